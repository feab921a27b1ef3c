# Linear elasticity of four grains, MPa: the strain of each grain is on a sub-batch axis of the input; one output has that
# axis too, the other is the mean over the grains.
[Settings]
  [example_batch_shape]
    strain = '(2; 4)'
  []
[]

[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200e3 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
  [mean_stress]
    type = SR2IntermediateMean
    from = 'stress'
    to = 'mean_stress'
    reduces = 'grain'
  []
  [grains]
    type = ComposedModel
    models = 'elasticity mean_stress'
    additional_outputs = 'stress'
  []
[]
