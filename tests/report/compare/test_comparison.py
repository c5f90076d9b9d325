import json
from dataclasses import replace

from hypothesis import given

from passfit.memory import plan_arena
from passfit.memory.footprint import Measured
from passfit.program import Weight
from passfit.report.compare import as_json, because, compare, compare_table, markdown
from passfit.report.compare.formats import sentences

from ...strategies import chain, programs
from ..rendered import words
from ..results import EVIL, accuracy, bare, result


def sizes(changes) -> list[tuple[str, int]]:
    return [(each.name, each.change) for each in changes]


def test_a_result_beside_itself_has_no_difference():
    found = compare(result(), result())
    assert found.same and not found.changed and because(found) == ""
    assert "nothing differs" in words(compare_table(found, "a", "b"))
    assert "| ram |" not in markdown(found, "a", "b")


def test_the_buffer_and_the_node_behind_a_growth_are_named_first():
    found = compare(result(chain(64, 512, 256, 64)), result(chain(64, 512, 1024, 64)))
    assert sizes(found.buffers) == [("b2", 768)]
    assert found.buffers[0].nodes == ("node1",) and found.buffers[0].kernel == "k1"
    assert because(found) == "b2 takes 768 B more at the peak (256 B before), made by k1 of node1"
    assert "arena 768 B 1.5 KiB +768 B (+100.0%)" in words(compare_table(found, "a", "b")).replace("│ ", "").replace(
        " │", ""
    )
    assert "| b2 | 256 B | 1.0 KiB | +768 B | node1 |" in markdown(found, "a", "b")


@given(programs(), programs())
def test_the_changes_at_the_peak_add_up_to_that_of_all_bytes_alive(one, two):
    for before, after in ((one, one), (one, two)):
        given, then, now = (result(before), result(after)), result(before).explanation(), result(after).explanation()
        names = [[each.name for each in found.alive] for found in (then, now)]
        if all(len(set(each)) == len(each) for each in names):
            total = sum(each.nbytes for each in now.alive) - sum(each.nbytes for each in then.alive)
            assert sum(each.change for each in compare(*given).buffers) == total
    assert compare(result(one), result(one)).same


def test_passes_that_went_and_came_and_another_order():
    one = result(passes=("a", "b", "c"))
    found = compare(one, result(passes=("a", "d", "c")))
    assert (found.dropped, found.added, found.reordered) == (("b",), ("d",), False)
    assert "sequence: − b; + d" in words(compare_table(found, "x", "y"))
    assert compare(one, result(passes=("b", "a", "c"))).reordered


def test_weights_that_grew():
    def weighing(nbytes: int):
        program = replace(chain(64, 64), weights=(Weight("w", nbytes, "00"), Weight("same", 8, "01")))
        return result(program)

    assert sizes(compare(weighing(64), weighing(192)).weights) == [("w", 128)]


def test_what_is_not_there_is_said():
    found = compare(bare(), result())
    assert found.unknown == (
        "buffers: there is no plan.json of the result before", "sequence: there is no sequence.json of the result before",
    )  # fmt: skip
    assert not found.buffers and "not compared: buffers" in markdown(found, "a", "b")


def test_latency_and_error_are_compared_where_they_are_known():
    slow = replace(result().footprint, measured=Measured(True, "native", latency_ms=3.0, max_rel_error=2e-7))
    found = {each.name: each for each in compare(result(), replace(result(), footprint=slow)).figures}
    assert (found["latency"].before, found["latency"].after) == (1.5, 3.0)
    assert found["max error"].change == 0 and "instructions" not in found


def test_json_holds_everything_in_bytes():
    found = compare(result(chain(64, 512, 256, 64)), result(chain(64, 512, 1024, 64)))
    data = json.loads(json.dumps(as_json(found, "a", "b")))
    assert (data["before"], data["after"], data["same"]) == ("a", "b", False)
    assert data["buffers"] == [{"name": "b2", "before": 256, "after": 1024, "nodes": ["node1"], "kernel": "k1"}]


def test_a_result_of_another_model_or_target_is_named():
    found = compare(result(model="one"), result(model="two"))
    assert found.earlier.startswith("one @ ")
    assert sentences(found)[0] == f"the result before is another's: {found.earlier}"
    assert not compare(result(), result()).earlier


def test_names_are_no_markup():
    program = chain(64, 64)
    named = replace(program, buffers=tuple(replace(each, name=EVIL) for each in program.buffers), name="x")
    text = markdown(compare(result(chain(64, 512), model="a|b"), result(named)), EVIL, "b\n# c")
    assert "<script" not in text.replace("\\<", "") and "\n# c" not in text
    assert plan_arena(named).arena


def test_accuracy_and_the_classes_that_moved_are_compared():
    one, two = (replace(result(), accuracy=accuracy(*each)) for each in ((0.95, "m", "t", 0.9), (0.9, "m", "t", 0.8)))
    found = compare(one, two)
    by_name = {each.name: (each.before, each.after) for each in found.figures}
    assert by_name["accuracy"] == (0.95, 0.9) and by_name["agreement"] == (1, 1) and not found.same
    assert "| accuracy | 0.95 | 0.9 | −0.05 (−5.3%) |" in markdown(found, "a", "b")
    assert "| dog | 0.9 | 0.8 | -0.1 |" in markdown(found, "a", "b")
    assert "dog" in words(compare_table(found, "a", "b")) and as_json(found, "a", "b")["classes"] == (
        ("dog", 0.9, 0.8),
    )
    assert compare(one, one).same


def test_what_was_not_evaluated_alike_is_said():
    one = replace(result(), accuracy=accuracy())
    assert compare(one, result()).unknown == ("accuracy: the result after was not evaluated",)
    f1 = replace(result(), accuracy=accuracy(metric="f1"))
    found = compare(one, f1)
    assert found.unknown == ("accuracy: the metric was accuracy before, and is f1 after",)
    assert not {"accuracy", "f1"} & {each.name for each in found.figures}
