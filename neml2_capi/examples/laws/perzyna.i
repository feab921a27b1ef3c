# J2 viscoplasticity of a steel: Perzyna flow and linear isotropic hardening, MPa and s. 7 unknowns: stress, equivalent
# plastic strain.
#
#     neml2-capi compile perzyna.i --model perzyna -d stress:strain
[Models]
  # Yield function
  [isotropic_hardening]
    type = LinearIsotropicHardening
    hardening_modulus = 2000
  []
  [mandel_stress]
    type = IsotropicMandelStress
    cauchy_stress = 'stress'
  []
  [effective_stress]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'mandel_stress'
    invariant = 'effective_stress'
  []
  [yield_function]
    type = YieldFunction
    yield_stress = 150
    isotropic_hardening = 'isotropic_hardening'
  []
  [yield_surface]
    type = ComposedModel
    models = 'effective_stress yield_function'
  []
  # Flow
  [normality]
    type = Normality
    model = 'yield_surface'
    function = 'yield_function'
    from = 'mandel_stress isotropic_hardening'
    to = 'flow_direction isotropic_hardening_direction'
  []
  [flow_rate]
    type = PerzynaPlasticFlowRate
    reference_stress = 120
    exponent = 6
  []
  [equivalent_plastic_strain_rate]
    type = AssociativeIsotropicPlasticHardening
  []
  [plastic_strain_rate]
    type = AssociativePlasticFlow
  []
  # Elasticity, in rate form
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
    models = 'isotropic_hardening mandel_stress effective_stress yield_function normality flow_rate
              equivalent_plastic_strain_rate plastic_strain_rate strain_rate elastic_strain_rate elasticity
              integrate_stress integrate_equivalent_plastic_strain'
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
[]

[Models]
  [predictor]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = 'stress'
    unknowns_Scalar = 'equivalent_plastic_strain'
  []
  [perzyna]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
[]
