"""One hexahedron of Kratos with a UMAT: LIBRARY PROPS STATES STEPS STRAIN; writes result.npy.

The face x = 1 is moved along x and y. Symmetry holds at z = 0, and an edge at x = 0; the other
corners are free.
"""

from __future__ import annotations

import json
import sys

import KratosMultiphysics as KM
import KratosMultiphysics.GeoMechanicsApplication  # has the law
import KratosMultiphysics.StructuralMechanicsApplication  # has the element
import numpy as np

library, props, depvar, steps, reached = sys.argv[1:6]
model = KM.Model()
part = model.CreateModelPart("cube")
for variable in (KM.DISPLACEMENT, KM.REACTION, KM.VOLUME_ACCELERATION):
    part.AddNodalSolutionStepVariable(variable)
part.SetBufferSize(2)
corners = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
for number, corner in enumerate(corners, 1):
    part.CreateNewNode(number, *map(float, corner))
for axis in "XYZ":
    displacement = KM.KratosGlobals.GetVariable(f"DISPLACEMENT_{axis}")
    KM.VariableUtils().AddDof(displacement, KM.KratosGlobals.GetVariable(f"REACTION_{axis}"), part)

settings = {
    "UDSM_NAME": library,
    "IS_FORTRAN_UDSM": True,
    "UMAT_PARAMETERS": [float(p) for p in props.split(",")],
    "STATE_VARIABLES": [0.0] * int(depvar),
}
material = {"constitutive_law": {"name": "SmallStrainUMAT3DLaw"}, "Variables": settings}
law = part.CreateNewProperties(1)
law_of_cube = {"model_part_name": "cube", "properties_id": 1, "Material": material}
KM.ReadMaterialsUtility(model).ReadMaterials(
    KM.Parameters(json.dumps({"properties": [law_of_cube]}))
)
element = part.CreateNewElement("SmallDisplacementElement3D8N", 1, list(range(1, 9)), law)

scheme = KM.ResidualBasedIncrementalUpdateStaticScheme()
criterion = KM.ResidualCriteria(1e-12, 1e-9)
builder = KM.ResidualBasedBlockBuilderAndSolver(KM.SkylineLUFactorizationSolver())
strategy = KM.ResidualBasedNewtonRaphsonStrategy(
    part, scheme, criterion, builder, 20, True, False, True
)
strategy.SetEchoLevel(1)
strategy.Check()
rows = []
for step in range(int(steps) + 1):  # the law takes the strain of the first for none
    part.ProcessInfo[KM.STEP] = step
    part.ProcessInfo[KM.DELTA_TIME] = 1.0
    part.CloneTimeStep(float(step + 1))
    for node, (x, y, z) in zip(part.Nodes, corners, strict=True):
        moved = [float(reached) * step / int(steps) * x * share for share in (1, 0.2, 0)]
        fixed = [True, (x == 0 and y == 0) or x == 1, z == 0]
        for axis, value, hold in zip("XYZ", moved, fixed, strict=True):
            if hold:
                displacement = KM.KratosGlobals.GetVariable(f"DISPLACEMENT_{axis}")
                node.Fix(displacement)
                node.SetSolutionStepValue(displacement, value)
    strategy.Solve()
    info = part.ProcessInfo
    strain = element.CalculateOnIntegrationPoints(KM.GREEN_LAGRANGE_STRAIN_VECTOR, info)
    # The law is evaluated once more, from the end of the step on.
    info[KM.DELTA_TIME] = 1e-12
    stress = element.CalculateOnIntegrationPoints(KM.CAUCHY_STRESS_VECTOR, info)
    rows.append([np.array([list(v) for v in values]) for values in (strain, stress)])
np.save("result.npy", np.array(rows))
