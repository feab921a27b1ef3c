# J2 plasticity of a steel with Prager's linear kinematic hardening, MPa; the rate does not matter. 13 unknowns: plastic
# strain, kinematic plastic strain, flow rate. In tension the slope is 3/2 of the hardening modulus.
#
#     neml2-capi compile kinematic.i --model kinematic -d stress:strain
[Models]
  # Yield function: effective stress - yield stress - hardening, times sqrt(2/3)
  [back_stress]
    type = LinearKinematicHardening
    hardening_modulus = 2000
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
  []
  [yield_surface]
    type = ComposedModel
    models = 'overstress effective_stress yield_function'
  []
  # Flow, in the direction of the yield function's gradient
  [normality]
    type = Normality
    model = 'yield_surface'
    function = 'yield_function'
    from = 'mandel_stress back_stress'
    to = 'flow_direction kinematic_hardening_direction'
  []
  [plastic_strain_rate]
    type = AssociativePlasticFlow
  []
  [kinematic_plastic_strain_rate]
    type = AssociativeKinematicPlasticHardening
  []
  # Elasticity
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
  # No flow below the yield surface, and no stress above it
  [consistency]
    type = MinMapComplementarity
    a = 'yield_function'
    a_inequality = 'LE'
    b = 'flow_rate'
  []
  # Backward Euler
  [integrate_plastic_strain]
    type = SR2BackwardEulerTimeIntegration
    variable = 'plastic_strain'
  []
  [integrate_kinematic_plastic_strain]
    type = SR2BackwardEulerTimeIntegration
    variable = 'kinematic_plastic_strain'
  []
  [residual]
    type = ComposedModel
    models = 'back_stress elastic_strain elasticity mandel_stress overstress effective_stress yield_function
              normality plastic_strain_rate kinematic_plastic_strain_rate consistency
              integrate_plastic_strain integrate_kinematic_plastic_strain'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'plastic_strain kinematic_plastic_strain flow_rate'
    residuals = 'plastic_strain_residual kinematic_plastic_strain_residual complementarity'
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
    unknowns_SR2 = 'plastic_strain kinematic_plastic_strain'
    unknowns_Scalar = 'flow_rate'
  []
  [return_map]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
  [kinematic]
    type = ComposedModel
    models = 'return_map elastic_strain elasticity'
    additional_outputs = 'plastic_strain kinematic_plastic_strain'
  []
[]
