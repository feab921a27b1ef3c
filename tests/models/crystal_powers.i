# A face-centred cubic single crystal, MPa and s, whose exponent is no integer: the powers of twelve slip systems stay powers.
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
    coefficients = '90e3 0.3'
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
    n = 8.3
    gamma0 = 0.2
  []
  [slip_strength]
    type = DislocationObstacleStrengthMap
    alpha = 0.35
    mu = 40e3
    b = 2.5e-4
    constant_strength = 40
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
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
  [crystal]
    type = ComposedModel
    models = 'update elasticity'
    additional_outputs = 'elastic_strain'
  []
[]
