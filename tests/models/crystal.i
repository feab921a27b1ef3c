# A face-centred cubic single crystal, MPa and s, with a dislocation density per slip system: twelve on a sub-batch axis, of
# an input, an unknown and an output. A cold start is predicted by coordinate descent, which the runtime iterates; Newton's
# method uses a line search; the stress is a forward segment after the implicit one.
[Settings]
  [example_batch_shape]
    dislocation_density = '(2; 12)'
  []
[]

[Tensors]
  [lattice_parameter]
    type = Python
    expr = 'Scalar(1.0)'
  []
  [slip_directions]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 0], dtype=torch.int64))'
  []
  [slip_planes]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 1], dtype=torch.int64))'
  []
  # The stiffness of [elasticity] in Mandel notation: lambda = mu = 40e3
  [stiffness]
    type = Python
    expr = 'SSR4(80e3 * torch.eye(6, dtype=torch.float64) + torch.nn.functional.pad(torch.full((3, 3), 40e3, dtype=torch.float64), (0, 3, 0, 3)))'
  []
[]

[Data]
  [crystal_geometry]
    type = CubicCrystal
    lattice_parameter = 'lattice_parameter'
    slip_directions = 'slip_directions'
    slip_planes = 'slip_planes'
  []
[]

[Models]
  [rotation]
    type = RotationMatrix
    from = 'orientation'
    to = 'orientation_matrix'
  []
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '100e3 0.25'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'elastic_strain'
  []
  [resolved_shear]
    type = ResolvedShear
  []
  [elastic_strain_rate]
    type = ElasticStrainRate
  []
  [plastic_spin]
    type = PlasticVorticity
  []
  [plastic_deformation_rate]
    type = PlasticDeformationRate
  []
  [orientation_rate]
    type = OrientationRate
  []
  [slip_rule]
    type = PowerLawSlipRule
    n = 8
    gamma0 = 0.2
  []
  [slip_strength]
    type = DislocationObstacleStrengthMap
    alpha = 0.3
    mu = 40e3
    b = 2.5e-4
    constant_strength = 50
  []
  [dislocation_density_rate]
    type = PerSlipForestDislocationEvolution
    k1 = 100
    k2 = 40
  []
  [integrate_dislocation_density]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'dislocation_density'
  []
  [integrate_elastic_strain]
    type = SR2BackwardEulerTimeIntegration
    variable = 'elastic_strain'
  []
  [integrate_orientation]
    type = WR2ImplicitExponentialTimeIntegration
    variable = 'orientation'
  []
  [residual]
    type = ComposedModel
    models = 'rotation elasticity orientation_rate resolved_shear elastic_strain_rate plastic_deformation_rate
              plastic_spin slip_rule slip_strength dislocation_density_rate
              integrate_dislocation_density integrate_elastic_strain integrate_orientation'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'elastic_strain orientation dislocation_density'
    residuals = 'elastic_strain_residual orientation_residual dislocation_density_residual'
  []
[]

[Solvers]
  [newton]
    type = NewtonWithLineSearch
    max_linesearch_iterations = 5
    rel_tol = 1e-10
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]

[Models]
  # Predictor: resolved shears of the elastic trial state, relaxed by slip at a typical strength
  [trial_strain]
    type = SR2ForwardEulerTimeIntegration
    variable = 'trial_strain'
    old_variable = 'elastic_strain~1'
    rate = 'deformation_rate'
  []
  [old_rotation]
    type = RotationMatrix
    from = 'orientation~1'
    to = 'old_orientation_matrix'
  []
  [trial_stress]
    type = LinearIsotropicElasticity
    coefficients = '100e3 0.25'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'trial_strain'
    stress = 'trial_stress'
  []
  [trial_shear]
    type = ResolvedShear
    stress = 'trial_stress'
    orientation_matrix = 'old_orientation_matrix'
    resolved_shears = 'trial_resolved_shears'
  []
  [coupling]
    type = SlipSystemElasticInteraction
    orientation = 'orientation~1'
    elastic_stiffness_tensor = 'stiffness'
    coupling = 'slip_coupling'
  []
  [typical_slip_strength]
    type = ScalarConstantParameter
    value = 60
    parameter = 'slip_strengths'
  []
  [coordinate_descent]
    type = CoordinateDescentPredictor
    rate_law = 'slip_rule'
    driving_force_input = 'resolved_shears'
    coupling = 'slip_coupling'
    trial_driving_force = 'trial_resolved_shears'
    rate = 'slip_rates'
    sweeps = 16
  []
  [predicted_plastic_rate]
    type = PlasticDeformationRate
    orientation_matrix = 'old_orientation_matrix'
  []
  [predicted_elastic_rate]
    type = ElasticStrainRate
    elastic_strain = 'elastic_strain~1'
  []
  [predicted_strain]
    type = SR2ForwardEulerTimeIntegration
    variable = 'predicted_strain'
    old_variable = 'elastic_strain~1'
    rate = 'elastic_strain_rate'
  []
  [seed]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = 'elastic_strain'
    unknowns_Scalar = 'dislocation_density'
    unknowns_MRP = 'orientation'
    cold = 'elastic_strain:predicted_strain'
  []
  [predictor]
    type = ComposedModel
    models = 'trial_strain old_rotation trial_stress trial_shear coupling typical_slip_strength coordinate_descent
              predicted_plastic_rate predicted_elastic_rate predicted_strain seed'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
  [crystal]
    type = ComposedModel
    models = 'update elasticity'
    additional_outputs = 'elastic_strain'
  []
[]
