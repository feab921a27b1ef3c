# Precipitates in n bins of radius, which grow out of a solution that all of them share.
n = 8
[Tensors]
  [edges]
    type = Python
    expr = 'Scalar(torch.linspace(1, 2, ${n} + 1, dtype=torch.float64), sub_batch_ndim=1)'
  []
  [radius]
    type = Python
    expr = 'Scalar(0.5 * (edges.data[..., :-1] + edges.data[..., 1:]), sub_batch_ndim=1)'
  []
  [width]
    type = Python
    expr = 'Scalar(edges.data[..., 1:] - edges.data[..., :-1], sub_batch_ndim=1)'
  []
  [growth]
    type = Python
    expr = 'Scalar(3.0 / radius.data, sub_batch_ndim=1)'
  []
  [first]
    type = Python
    expr = 'Scalar(torch.tensor(0.1, dtype=torch.float64))'
  []
  [inside]
    type = Python
    expr = 'Scalar(torch.tensor(1.0, dtype=torch.float64))'
  []
[]

[Models]
  [fraction]
    type = PrecipitateVolumeFraction
    radius = 'radius'
    number_density = 'number'
    volume_fraction = 'vf'
  []
  [dissolved]
    type = CurrentConcentration
    initial_concentration = 'first'
    precipitate_volume_fractions = 'vf'
    precipitate_concentrations = 'inside'
    current_concentration = 'x'
  []
  [growing]
    type = ScalarMultiplication
    from = 'x'
    scaling = 'growth'
    to = 'speed'
  []
  [speed_at_edges]
    type = LinearlyInterpolateToCellEdges
    cell_values = 'speed'
    cell_centers = 'radius'
    cell_edges = 'edges'
    edge_values = 'v_edge'
  []
  [advection]
    type = FiniteVolumeUpwindedAdvectiveFlux
    u = 'number'
    v_edge = 'v_edge'
    flux = 'J'
  []
  [left]
    type = FiniteVolumeAppendBoundaryCondition
    input = 'J'
    bc_value = 0.0
    side = 'left'
  []
  [right]
    type = FiniteVolumeAppendBoundaryCondition
    input = 'J_with_bc_left'
    bc_value = 0.0
    side = 'right'
  []
  [divergence]
    type = FiniteVolumeGradient
    u = 'J_with_bc_left_with_bc_right'
    dx = 'width'
    grad_u = 'number_rate'
  []
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'number'
  []
  [residual]
    type = ComposedModel
    models = 'fraction dissolved growing speed_at_edges advection left right divergence integrate'
  []
  [predictor]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'number'
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
    unknowns = 'number'
  []
[]

[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-18
    rel_tol = 1e-13
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
