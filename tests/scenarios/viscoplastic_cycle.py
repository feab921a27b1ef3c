"""A cycle of tension and compression: all state variables of a point lie in one array."""

from scenario import Points, load, print_points

points = Points(load("viscoplastic"), range(5))
for k in range(1, 21):
    points.load(k)
    points.call()
    assert (points.state[:, 6] >= points.old_state[:, 6]).all()  # plastic strain
    for X in (points.state[:, 7:13], points.state[:, 13:19]):
        assert (abs(X[:, :3].sum(axis=1)) < 1e-10).all()  # MPa
    points.accept()
assert points.state[0, 6] > 1e-3  # it did flow
print_points("state", points.state)
print("iterations", *points.call.report["iterations"])
