# J2 creep above a yield stress with linear isotropic hardening, MPa and s. 7 unknowns: stress, equivalent plastic
# strain. The recipes choose the linear solvers and the depth of substepping:
#
#     neml2-compile creep.i --model creep Solvers/newton/linear_solver:=bicgstab
[Models]
  [flow_direction]
    type = AssociativeJ2FlowDirection
    mandel_stress = 'stress'
  []
  [effective_stress]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'stress'
    invariant = 'effective_stress'
  []
  [isotropic_hardening]
    type = LinearIsotropicHardening
    hardening_modulus = 2000
  []
  [yield_function]
    type = YieldFunction
    yield_stress = 150
    isotropic_hardening = 'isotropic_hardening'
  []
  [flow_rate]
    type = PerzynaPlasticFlowRate
    reference_stress = 120
    exponent = 6
    flow_rate = 'equivalent_plastic_strain_rate'
  []
  [plastic_strain_rate]
    type = AssociativePlasticFlow
    flow_rate = 'equivalent_plastic_strain_rate'
  []
  [strain_rate]
    type = SR2VariableRate
    variable = 'strain'
  []
  [elastic_strain_rate]
    type = SR2LinearCombination
    from = 'strain_rate plastic_strain_rate'
    to = 'elastic_strain_rate'
    weights = '1 -1'
  []
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200e3 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'elastic_strain'
    rate_form = true
  []
  # Backward Euler
  [integrate_stress]
    type = SR2BackwardEulerTimeIntegration
    variable = 'stress'
  []
  [integrate_equivalent_plastic_strain]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'equivalent_plastic_strain'
  []
  [residual]
    type = ComposedModel
    models = 'flow_direction effective_stress isotropic_hardening yield_function flow_rate plastic_strain_rate
              strain_rate elastic_strain_rate elasticity integrate_stress integrate_equivalent_plastic_strain'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'stress equivalent_plastic_strain'
  []
[]

[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-10
    rel_tol = 1e-10
    max_its = 50
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
  [gmres]
    type = GMRES
    abs_tol = 1e-12
    rel_tol = 1e-8
    preconditioner = 'block_jacobi'
    cache_strategy = 'chord'
  []
  [block_jacobi]
    type = BlockJacobiPreconditioner
  []
  [bicgstab]
    type = BiCGStab
    abs_tol = 1e-12
    rel_tol = 1e-8
  []
  # To round-off, for derivatives. The restart is shorter than the number of unknowns.
  [accurate_gmres]
    type = GMRES
    restart = 5
    rel_tol = 1e-13
  []
  [accurate_bicgstab]
    type = BiCGStab
    rel_tol = 1e-13
  []
[]

[Models]
  [predictor]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = 'stress'
    unknowns_Scalar = 'equivalent_plastic_strain'
  []
  [creep]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
[]
