# Bins of a size distribution: a density in each of three bins grows by a supply and decays. What is
# made of it afterwards has constants in each bin, and sums over the bins.
[Tensors]
  [rate]
    type = Python
    expr = 'Scalar(torch.tensor([-1.0, -2.0, -4.0], dtype=torch.float64), sub_batch_ndim=1)'
  []
  [width]
    type = Python
    expr = 'Scalar(torch.tensor([0.5, 0.25, 2.0], dtype=torch.float64), sub_batch_ndim=1)'
  []
  [radius]
    type = Python
    expr = 'Scalar(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), sub_batch_ndim=1)'
  []
  [borders]
    type = Python
    expr = 'Scalar(torch.tensor([0.5, 1.5, 2.5, 3.5], dtype=torch.float64), sub_batch_ndim=1)'
  []
[]

[Models]
  [supply]
    type = ScalarMultiplication
    from = 'inflow'
    scaling = 'width'
    to = 'supply'
  []
  [decay]
    type = ScalarMultiplication
    from = 'density'
    scaling = 'rate'
    to = 'decay'
  []
  [change]
    type = ScalarLinearCombination
    from = 'supply decay'
    to = 'density_rate'
  []
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'density'
  []
  [residual]
    type = ComposedModel
    models = 'decay change integrate'
  []
  [predictor]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'density'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
  [count]
    type = ScalarMultiplication
    from = 'density'
    scaling = 'width'
    to = 'count'
  []
  [fraction]
    type = PrecipitateVolumeFraction
    radius = 'radius'
    number_density = 'count'
    volume_fraction = 'fraction'
  []
  [turnover]
    type = ScalarLinearCombination
    from = 'supply count'
    to = 'turnover'
  []
  [bins]
    type = ComposedModel
    models = 'supply update count fraction turnover'
    additional_outputs = 'density count supply'
  []
  [after]
    type = ComposedModel
    models = 'count fraction'
    additional_outputs = 'count'
  []
  [edges]
    type = LinearlyInterpolateToCellEdges
    cell_values = 'count'
    cell_centers = 'radius'
    cell_edges = 'borders'
    edge_values = 'edges'
  []
  [between]
    type = ComposedModel
    models = 'count edges'
    additional_outputs = 'count'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'density'
  []
[]

[Solvers]
  [newton]
    type = Newton
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
