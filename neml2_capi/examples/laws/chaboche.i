# J2 viscoplasticity of a steel, MPa and s: Perzyna flow, Voce isotropic hardening and two Chaboche back stresses
# with static recovery, integrated by backward Euler. 19 unknowns: stress, equivalent plastic strain, X1, X2.
#
#     neml2-capi compile chaboche.i --model chaboche -d stress:strain
[Models]
  # Yield function
  [isotropic_hardening]
    type = VoceIsotropicHardening
    saturated_hardening = 60
    saturation_rate = 8
  []
  [back_stress]
    type = SR2LinearCombination
    from = 'X1 X2'
    to = 'back_stress'
  []
  [mandel_stress]
    type = IsotropicMandelStress
    cauchy_stress = 'stress'
  []
  [overstress]
    type = SR2LinearCombination
    from = 'mandel_stress back_stress'
    to = 'overstress'
    weights = '1 -1'
  []
  [effective_stress]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'overstress'
    invariant = 'effective_stress'
  []
  [yield_function]
    type = YieldFunction
    yield_stress = 150
    isotropic_hardening = 'isotropic_hardening'
  []
  [yield_surface]
    type = ComposedModel
    models = 'overstress effective_stress yield_function'
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
  [X1_rate]
    type = ChabochePlasticHardening
    back_stress = 'X1'
    C = 40000
    g = 400
    A = 1e-6
    a = 2.2
  []
  [X2_rate]
    type = ChabochePlasticHardening
    back_stress = 'X2'
    C = 4000
    g = 40
    A = 1e-8
    a = 3.2
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
  [integrate_X1]
    type = SR2BackwardEulerTimeIntegration
    variable = 'X1'
  []
  [integrate_X2]
    type = SR2BackwardEulerTimeIntegration
    variable = 'X2'
  []
  [residual]
    type = ComposedModel
    models = 'isotropic_hardening back_stress mandel_stress overstress effective_stress yield_function
              normality flow_rate equivalent_plastic_strain_rate plastic_strain_rate X1_rate X2_rate
              strain_rate elastic_strain_rate elasticity
              integrate_stress integrate_equivalent_plastic_strain integrate_X1 integrate_X2'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'stress equivalent_plastic_strain X1 X2'
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
    unknowns_SR2 = 'stress X1 X2'
    unknowns_Scalar = 'equivalent_plastic_strain'
  []
  [chaboche]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
[]
