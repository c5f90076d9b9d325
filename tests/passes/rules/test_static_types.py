import pytest
from tvm import relax, tirx

from passfit.passes.graph.rules.dataflow import Dataflow
from passfit.passes.graph.rules.static_types import shape_of, static_shape

pytestmark = pytest.mark.tvm
N = tirx.Var("n", "int64")


@pytest.mark.parametrize(
    ("type_", "shape"),
    [
        (relax.TensorType((2, 3), "float32"), (2, 3)),
        (relax.TensorType((), "float32"), ()),
        (relax.TensorType((2, N), "float32"), None),
        (relax.TensorType(dtype="float32", ndim=2), None),
        (relax.TupleType([relax.TensorType((2, 3), "float32")]), None),
    ],
)
def test_a_static_shape_is_one_of_known_extents(type_, shape):
    value = relax.Var("x", type_)
    assert shape_of(value) == shape
    graph = Dataflow(relax.Function([value], relax.SeqExpr([], value), type_))
    if shape is not None:
        assert static_shape(value) == graph.static_shape(value) == shape
        return
    for ask in (static_shape, graph.static_shape):
        with pytest.raises(TypeError, match="has no static shape"):
            ask(value)
