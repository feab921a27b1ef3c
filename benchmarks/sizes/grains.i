# n crystals with one deformation rate and one mean stress: in a direction the former is given, in the
# others the latter. The unknowns of a grain are a block of their own.
n = 2
[Settings]
  [example_batch_shape]
    elastic_strain~1 = '(2; ${n})'
    orientation~1 = '(2; ${n})'
    slip_hardening~1 = '(2; ${n})'
    deformation_rate~1 = '(2,)'
    target_cauchy_stress~1 = '(2,)'
    control = '(2,)'
    prescribed = '(2,)'
    vorticity = '(2,)'
    t = '(2,)'
    t~1 = '(2,)'
  []
[]

[Tensors]
  [directions]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 0], dtype=torch.int64))'
  []
  [planes]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 1], dtype=torch.int64))'
  []
  [stiffness]
    type = Python
    expr = 'SSR4(torch.tensor([[280e3, 120e3, 120e3, 0, 0, 0], [120e3, 280e3, 120e3, 0, 0, 0], [120e3, 120e3, 280e3, 0, 0, 0], [0, 0, 0, 110e3, 0, 0], [0, 0, 0, 0, 110e3, 0], [0, 0, 0, 0, 0, 110e3]], dtype=torch.float64))'
  []
[]

[Data]
  [crystal_geometry]
    type = CubicCrystal
    lattice_parameter = 1
    slip_directions = 'directions'
    slip_planes = 'planes'
  []
[]

[Models]
  [control_setup]
    type = MixedControlSetup
    x_above = 'deformation_rate'
    x_below = 'target_cauchy_stress'
    y = 'mixed_state'
  []
  [controlled]
    type = SR2LinearCombination
    from = 'mixed_state prescribed'
    to = 'y_residual'
    weights = '1 -1'
  []
  [rotation]
    type = RotationMatrix
    from = 'orientation'
    to = 'orientation_matrix'
  []
  [elasticity]
    type = GeneralElasticity
    elastic_stiffness_tensor = 'stiffness'
    strain = 'elastic_strain'
    stress = 'cauchy_stress'
  []
  [resolved_shear]
    type = ResolvedShear
    stress = 'cauchy_stress'
  []
  [elastic_rate]
    type = ElasticStrainRate
    deformation_rate = 'deformation_rate'
  []
  [plastic_spin]
    type = PlasticVorticity
  []
  [plastic_rate]
    type = PlasticDeformationRate
  []
  [orientation_rate]
    type = OrientationRate
  []
  [slip_rates]
    type = SumSlipRates
  []
  [slip_rule]
    type = PowerLawSlipRule
    n = 6.0
    gamma0 = 1.0e-1
  []
  [strength]
    type = SingleSlipStrengthMap
    constant_strength = 60.0
  []
  [hardening]
    type = VoceSingleSlipHardeningRule
    initial_slope = 400.0
    saturated_hardening = 40.0
  []
  [integrate_hardening]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'slip_hardening'
  []
  [integrate_strain]
    type = SR2BackwardEulerTimeIntegration
    variable = 'elastic_strain'
  []
  [integrate_orientation]
    type = WR2ImplicitExponentialTimeIntegration
    variable = 'orientation'
  []
  [grain]
    type = ComposedModel
    models = 'elasticity rotation orientation_rate resolved_shear elastic_rate plastic_rate plastic_spin slip_rates slip_rule strength hardening integrate_hardening integrate_strain integrate_orientation'
    additional_outputs = 'cauchy_stress'
  []
  [mean]
    type = SR2IntermediateMean
    from = 'cauchy_stress'
    to = 'mean_cauchy_stress'
    reduces = 'grain'
  []
  [balance]
    type = SR2LinearCombination
    from = 'target_cauchy_stress mean_cauchy_stress'
    to = 'target_cauchy_stress_residual'
    weights = '1 -1'
  []
  [residual]
    type = ComposedModel
    models = 'control_setup controlled grain mean balance'
  []
  [predictor]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = 'elastic_strain deformation_rate target_cauchy_stress'
    unknowns_MRP = 'orientation'
    unknowns_Scalar = 'slip_hardening'
  []
  [model]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'elastic_strain orientation slip_hardening; deformation_rate target_cauchy_stress'
    residuals = 'elastic_strain_residual orientation_residual slip_hardening_residual; y_residual target_cauchy_stress_residual'
    structure = 'block dense'
  []
[]

[Solvers]
  [newton]
    type = NewtonWithLineSearch
    max_linesearch_iterations = 5
    linear_solver = 'schur'
  []
  [lu]
    type = DenseLU
  []
  [schur]
    type = SchurComplement
    residual_primary_group = '0'
    unknown_primary_group = '0'
    primary_solver = 'lu'
    schur_solver = 'lu'
  []
[]
