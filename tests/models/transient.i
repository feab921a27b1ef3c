# Creep and relaxation under a history of strains, driven by NEML2: three points, from a state that is not virgin.
#
#     neml2-compile transient.i --driver driver
!include relaxation.i
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0.0, 1.0, 11, dtype=torch.float64) ** 2)'
  []
  [strains]
    type = Python
    expr = 'SR2(torch.linspace(0.0, 1.0, 11, dtype=torch.float64).sin().reshape(-1, 1, 1)
                * torch.tensor([1e-3, 3e-3, 5e-3], dtype=torch.float64).reshape(-1, 1)
                * torch.tensor([1.0, -0.3, -0.25, 0.35, -0.2, 0.15], dtype=torch.float64))'
  []
  [initial]
    type = Python
    expr = 'SR2(torch.tensor([2e-4, -1e-4, 0.0, 1e-4, 0.0, 0.0], dtype=torch.float64))'
  []
[]

[Drivers]
  [driver]
    type = TransientDriver
    model = 'relaxation'
    prescribed_time = 'times'
    prescribed_SR2_names = 'strain'
    prescribed_SR2_values = 'strains'
    ic_SR2_names = 'elastic_strain'
    ic_SR2_values = 'initial'
  []
  [regression]
    type = TransientRegression
    driver = 'driver'
    reference = 'transient.pt'
    rtol = 1e-10
    atol = 1e-10
  []
[]
