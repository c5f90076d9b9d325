import pytest

from passfit.program import Tensor


def test_a_tensor_on_a_buffer_has_its_number():
    assert Tensor((2,), "float32", buffer=3).buffer_number == 3
    with pytest.raises(TypeError, match="buffer 3 has no weight"):
        _ = Tensor((2,), "float32", buffer=3).weight_number


def test_a_tensor_on_a_weight_has_its_number():
    assert Tensor((2,), "float32", weight=0).weight_number == 0
    with pytest.raises(TypeError, match="weight 0 has no buffer"):
        _ = Tensor((2,), "float32", weight=0).buffer_number
