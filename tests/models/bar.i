# Creep of a bar under a prescribed stress: the strain rate is ((stress - H strain) / viscosity)^3, by backward Euler.
# One unknown. The stress is a force in total form: nothing but the parts of an increment reads its old value, and nothing
# but the predictor reads t~2.
[Models]
  [effective_stress]
    type = ScalarLinearCombination
    from = 'stress strain'
    to = 'effective_stress'
    weights = '1 -2000'
  []
  [flow]
    type = PerzynaPlasticFlowRate
    yield_function = 'effective_stress'
    flow_rate = 'strain_rate'
    reference_stress = 100
    exponent = 3
  []
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'strain'
    time = 't'
  []
  [residual]
    type = ComposedModel
    models = 'effective_stress flow integrate'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'strain'
  []
[]

[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-12
    rel_tol = 1e-12
    max_its = 30
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]

[Models]
  [predictor]
    type = LinearExtrapolationPredictor
    unknowns_Scalar = 'strain'
  []
  [bar]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
[]
