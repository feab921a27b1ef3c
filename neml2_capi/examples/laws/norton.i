# Norton's creep of a steel, MPa and s: the equivalent creep strain grows by (stress / 4000 MPa)^5 a second. 7 unknowns:
# stress, equivalent creep strain.
#
#     neml2-capi compile norton.i --model norton -d stress:strain
[Models]
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
  [flow_rate]
    type = PerzynaPlasticFlowRate
    yield_function = 'effective_stress'  # there is no yield stress
    reference_stress = 4000
    exponent = 5
    flow_rate = 'equivalent_creep_strain_rate'
  []
  [creep_strain_rate]
    type = AssociativePlasticFlow
    flow_rate = 'equivalent_creep_strain_rate'
    plastic_strain_rate = 'creep_strain_rate'
  []
  [strain_rate]
    type = SR2VariableRate
    variable = 'strain'
  []
  [elastic_strain_rate]
    type = SR2LinearCombination
    from = 'strain_rate creep_strain_rate'
    to = 'elastic_strain_rate'
    weights = '1 -1'
  []
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200e3 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'elastic_strain'
    rate_form = true
  []
  # Backward Euler
  [integrate_stress]
    type = SR2BackwardEulerTimeIntegration
    variable = 'stress'
  []
  [integrate_equivalent_creep_strain]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'equivalent_creep_strain'
  []
  [residual]
    type = ComposedModel
    models = 'flow_direction effective_stress flow_rate creep_strain_rate strain_rate elastic_strain_rate elasticity
              integrate_stress integrate_equivalent_creep_strain'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'stress equivalent_creep_strain'
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
    unknowns_SR2 = 'stress'
    unknowns_Scalar = 'equivalent_creep_strain'
  []
  [norton]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
[]
