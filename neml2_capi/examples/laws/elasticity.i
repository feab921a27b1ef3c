# Linear isotropic elasticity of a steel, MPa.
#
#     neml2-capi compile elasticity.i --model elasticity -p elasticity.E -d stress:strain
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200e3 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
[]
