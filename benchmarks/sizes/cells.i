# Diffusion, advection and decay in a row of n cells of growing width.
n = 8
[Tensors]
  [edges]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, ${n} + 1, dtype=torch.float64) ** 1.5, sub_batch_ndim=1)'
  []
  [centers]
    type = Python
    expr = 'Scalar(0.5 * (edges.data[..., :-1] + edges.data[..., 1:]), sub_batch_ndim=1)'
  []
  [between]
    type = Python
    expr = 'Scalar(centers.data[..., 1:] - centers.data[..., :-1], sub_batch_ndim=1)'
  []
  [width]
    type = Python
    expr = 'Scalar(edges.data[..., 1:] - edges.data[..., :-1], sub_batch_ndim=1)'
  []
  [diffusivity]
    type = Python
    expr = 'Scalar(0.5 + centers.data, sub_batch_ndim=1)'
  []
  [speed]
    type = Python
    expr = 'Scalar(0.4 * torch.ones_like(centers.data), sub_batch_ndim=1)'
  []
[]

[Models]
  [diffusivity_at_edges]
    type = LinearlyInterpolateToCellEdges
    cell_values = 'diffusivity'
    cell_centers = 'centers'
    cell_edges = 'edges'
    edge_values = 'D'
  []
  [speed_at_edges]
    type = LinearlyInterpolateToCellEdges
    cell_values = 'speed'
    cell_centers = 'centers'
    cell_edges = 'edges'
    edge_values = 'v_edge'
  []
  [diffusion]
    type = FiniteVolumeGradient
    u = 'c'
    prefactor = 'D'
    dx = 'between'
    grad_u = 'diffused'
  []
  [advection]
    type = FiniteVolumeUpwindedAdvectiveFlux
    u = 'c'
    v_edge = 'v_edge'
    flux = 'carried'
  []
  [flux]
    type = ScalarLinearCombination
    from = 'diffused carried'
    to = 'J'
    weights = '1 1'
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
    grad_u = 'gained'
  []
  [decay]
    type = ScalarLinearCombination
    from = 'c'
    to = 'decayed'
    weights = '-0.05'
  []
  [rate]
    type = ScalarLinearCombination
    from = 'gained decayed'
    to = 'c_rate'
    weights = '1 1'
  []
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'c'
  []
  [residual]
    type = ComposedModel
    models = 'diffusivity_at_edges speed_at_edges diffusion advection flux left right divergence decay rate integrate'
  []
  [predictor]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'c'
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
    unknowns = 'c'
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
