# J2 creep above a yield stress, MPa and s, in terms of the elastic strain: the 6 unknowns of an implicit segment.
# The stress is a forward segment after it. Elasticity is part of both.
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200e3 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'elastic_strain'
  []
  [flow_direction]
    type = AssociativeJ2FlowDirection
    mandel_stress = 'stress'
  []
  [effective_stress]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'stress'
    invariant = 'effective_stress'
  []
  [yield_function]
    type = YieldFunction
    yield_stress = 100
  []
  [flow_rate]
    type = PerzynaPlasticFlowRate
    reference_stress = 500
    exponent = 4
  []
  [plastic_strain_rate]
    type = AssociativePlasticFlow
  []
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
  [integrate_elastic_strain]
    type = SR2BackwardEulerTimeIntegration
    variable = 'elastic_strain'
  []
  [residual]
    type = ComposedModel
    models = 'elasticity flow_direction effective_stress yield_function flow_rate plastic_strain_rate strain_rate
              elastic_strain_rate integrate_elastic_strain'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'elastic_strain'
  []
[]

[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-14
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
    unknowns_SR2 = 'elastic_strain'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
  [relaxation]
    type = ComposedModel
    models = 'update elasticity'
    additional_outputs = 'elastic_strain'
  []
[]
