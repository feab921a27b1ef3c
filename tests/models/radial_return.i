# Radial return of J2 viscoplasticity with linear isotropic and kinematic hardening, MPa and s. Three segments: the flow
# direction of the elastic trial state, the implicit consistency parameter, and the update of the state with it.
[Models]
  # Elastic trial state. The same elasticity serves here and in the update.
  [trial_elastic_strain]
    type = SR2LinearCombination
    from = 'strain plastic_strain~1'
    to = 'elastic_strain'
    weights = '1 -1'
  []
  [trial_isotropic_hardening]
    type = LinearIsotropicHardening
    equivalent_plastic_strain = 'equivalent_plastic_strain~1'
    isotropic_hardening = 'trial_isotropic_hardening'
    hardening_modulus = 2000
  []
  [trial_back_stress]
    type = LinearKinematicHardening
    kinematic_plastic_strain = 'kinematic_plastic_strain~1'
    back_stress = 'trial_back_stress'
    hardening_modulus = 1000
  []
  [trial_overstress]
    type = SR2LinearCombination
    from = 'mandel_stress trial_back_stress'
    to = 'trial_overstress'
    weights = '1 -1'
  []
  [trial_effective_stress]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'trial_overstress'
    invariant = 'trial_effective_stress'
  []
  [trial_yield_function]
    type = YieldFunction
    yield_stress = 150
    yield_function = 'trial_yield_function'
    effective_stress = 'trial_effective_stress'
    isotropic_hardening = 'trial_isotropic_hardening'
  []
  [trial_yield]
    type = ComposedModel
    models = 'trial_overstress trial_effective_stress trial_yield_function'
  []
  [trial_normality]
    type = Normality
    model = 'trial_yield'
    function = 'trial_yield_function'
    from = 'mandel_stress trial_isotropic_hardening trial_back_stress'
    to = 'flow_direction isotropic_hardening_direction kinematic_hardening_direction'
  []
  [trial_state]
    type = ComposedModel
    models = 'trial_elastic_strain elasticity mandel_stress trial_isotropic_hardening trial_back_stress trial_normality'
  []
  # Consistency
  [consistency_rate]
    type = ScalarVariableRate
    variable = 'gamma'
  []
  [plastic_strain_rate]
    type = AssociativePlasticFlow
    flow_rate = 'gamma_rate'
  []
  [plastic_strain]
    type = SR2ForwardEulerTimeIntegration
    variable = 'plastic_strain'
  []
  [equivalent_plastic_strain_rate]
    type = AssociativeIsotropicPlasticHardening
    flow_rate = 'gamma_rate'
  []
  [equivalent_plastic_strain]
    type = ScalarForwardEulerTimeIntegration
    variable = 'equivalent_plastic_strain'
  []
  [kinematic_plastic_strain_rate]
    type = AssociativeKinematicPlasticHardening
    flow_rate = 'gamma_rate'
  []
  [kinematic_plastic_strain]
    type = SR2ForwardEulerTimeIntegration
    variable = 'kinematic_plastic_strain'
  []
  [elastic_strain]
    type = SR2LinearCombination
    from = 'strain plastic_strain'
    to = 'elastic_strain'
    weights = '1 -1'
  []
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200e3 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'elastic_strain'
  []
  [mandel_stress]
    type = IsotropicMandelStress
    cauchy_stress = 'stress'
  []
  [isotropic_hardening]
    type = LinearIsotropicHardening
    hardening_modulus = 2000
  []
  [back_stress]
    type = LinearKinematicHardening
    hardening_modulus = 1000
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
  [flow_rate]
    type = PerzynaPlasticFlowRate
    reference_stress = 120
    exponent = 6
  []
  [consistency]
    type = ScalarLinearCombination
    from = 'gamma_rate flow_rate'
    to = 'gamma_residual'
    weights = '1 -1'
  []
  [surface]
    type = ComposedModel
    models = 'consistency_rate plastic_strain_rate plastic_strain elastic_strain elasticity mandel_stress
              kinematic_plastic_strain_rate kinematic_plastic_strain back_stress
              equivalent_plastic_strain_rate equivalent_plastic_strain isotropic_hardening
              overstress effective_stress yield_function flow_rate consistency'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'surface'
    unknowns = 'gamma'
  []
[]

[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-12
    rel_tol = 1e-14
    max_its = 100
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]

[Models]
  [predictor]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'gamma'
  []
  [return_map]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
  [update]
    type = ComposedModel
    models = 'trial_state return_map consistency_rate plastic_strain_rate plastic_strain
              equivalent_plastic_strain_rate equivalent_plastic_strain
              kinematic_plastic_strain_rate kinematic_plastic_strain'
    additional_outputs = 'gamma'
  []
  [radial_return]
    type = ComposedModel
    models = 'update elastic_strain elasticity'
    additional_outputs = 'plastic_strain equivalent_plastic_strain kinematic_plastic_strain'
  []
[]
