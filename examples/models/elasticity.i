# Linear isotropic elasticity of a steel, MPa. The Young's modulus is promoted: it can be changed at run time.
#
#     neml2-compile elasticity.i --model elasticity -p elasticity.E -d stress:strain
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200e3 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
[]
