# Creep of three grains that share one strain, under a prescribed mean stress, MPa and s. Each grain has its own creep
# strength. The unknown stress has one sub-batch axis, in a block of its own; the unknown strain has none, and the solver
# eliminates the grains.
[Settings]
  [example_batch_shape]
    stress = '(2; 3)'
    strength = '(2; 3)'
  []
[]

[Models]
  # Each grain
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
  [overstress]
    type = ScalarLinearCombination
    from = 'effective_stress strength'
    to = 'overstress'
    weights = '1 -1'
  []
  [flow_rate]
    type = PerzynaPlasticFlowRate
    yield_function = 'overstress'
    reference_stress = 300
    exponent = 4
  []
  [plastic_strain_rate]
    type = AssociativePlasticFlow
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
  [integrate_stress]
    type = SR2BackwardEulerTimeIntegration
    variable = 'stress'
  []
  # All grains
  [mean_stress]
    type = SR2IntermediateMean
    from = 'stress'
    to = 'mean_stress'
    reduces = 'grain'
  []
  [equilibrium]
    type = SR2LinearCombination
    from = 'mean_stress applied_stress'
    to = 'strain_residual'
    weights = '1 -1'
  []
  [residual]
    type = ComposedModel
    models = 'flow_direction effective_stress overstress flow_rate plastic_strain_rate strain_rate elastic_strain_rate
              elasticity integrate_stress mean_stress equilibrium'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'stress; strain'
    residuals = 'stress_residual; strain_residual'
    structure = 'block dense'
  []
[]

[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-10
    rel_tol = 1e-10
    max_its = 50
    linear_solver = 'schur'
  []
  [schur]
    type = SchurComplement
    primary_solver = 'lu'
    schur_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]

[Models]
  [predictor]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = 'stress strain'
  []
  [polycrystal]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
[]
