"""Check params.yaml: a right file is read, a wrong entry is named with its place."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import ConfigError
from passfit.memory.footprint import Budget
from passfit.params.params import check_targets, load_params
from passfit.targets import get_target

FULL = """
models:
  first: {source: "pypi:pack==1.0!in/wheel.onnx", shapes: {x: [1, 3, 48, 192], y: 2x5}, fix: {sr: 16000}, bounds: {boxes: 300}, outputs: [y, z]}
  second: {source: models/second.onnx}
targets:
  rpi4: {budget: {ram: 1MiB, flash: 4MiB}}
  rpi-zero2: {budget: {ram: 2MiB, flash: 3MiB}, budgets: {first: {ram: 600KiB}, second: {flash: null}}}
  bare:
search: {strategy: greedy, evaluations: 8, seconds: 2, seed: 1}
verify: {tolerance: 1e-4}
"""


@pytest.fixture
def load(tmp_path):
    def load_text(text: str):
        path = tmp_path / "params.yaml"
        path.write_text(text, encoding="utf-8")
        return load_params(path)

    return load_text


def test_the_whole_form_is_read(load):
    params = load(FULL)
    assert params.models["first"].shapes == {"x": (1, 3, 48, 192), "y": (2, 5)}
    assert params.models["first"].bounds == {"boxes": 300}
    assert params.models["first"].fix == {"sr": 16000} and params.models["first"].outputs == ("y", "z")
    assert list(params.targets) == ["rpi4", "rpi-zero2", "bare"]
    assert (params.search.evaluations, params.search.seconds, params.search.seed) == (8, 2.0, 1)
    assert params.verify.tolerance == 1e-4
    assert params.track.experiment == "passfit"


def test_an_empty_file_holds_the_defaults(load):
    params = load("")
    assert params.models == {} and params.targets == {}
    assert (params.search.strategy, params.verify.cases) == ("orchestrated", 3)


def test_a_models_own_budget_wins_quantity_by_quantity(load):
    params = load(FULL)
    assert params.budget("first", "rpi4") == Budget(ram=1 << 20, flash=4 << 20)
    assert params.budget("first", "rpi-zero2") == Budget(ram=600 << 10, flash=3 << 20)
    assert params.budget("second", "rpi-zero2") == Budget(ram=2 << 20, flash=None)
    assert params.budget("first", "bare") == Budget()


@pytest.mark.parametrize(
    ("text", "read"), [("", 0.25), ("{max-extra-compute: 1}", 1.0), ("{max-extra-compute: null}", None)]
)
def test_the_extra_compute_is_a_fraction_or_null_which_leaves_kernels_whole(load, text, read):
    assert load(f"search: {text}").search.max_extra_compute == read


@pytest.mark.parametrize(("text", "read"), [("", 1.25), ("{max-slowdown: 2}", 2.0), ("{max-slowdown: null}", None)])
def test_the_least_ram_is_within_reason_by_default(load, text, read):
    assert load(f"search: {text}").search.max_slowdown == read


def test_a_target_has_one_thread_unless_it_says_more(load):
    params = load("targets: {rpi4: {threads: 4}, beaglebone: {}}")
    assert [params.targets[name].threads for name in ("rpi4", "beaglebone")] == [4, 1]


def test_a_target_has_threads_a_weight_of_code_and_checks_of_indices(load):
    params = load("targets: {rpi4: {threads: 4, opt: size, index-checks: clamp}, beaglebone: {}}")
    chosen = [params.targets[name].apply(get_target(name)) for name in ("rpi4", "beaglebone")]
    assert [(each.threads, each.opt, each.index_checks) for each in chosen] == [
        (4, "size", "clamp"),
        (1, "balanced", "fail"),
    ]


def test_memories_have_budgets_of_which_a_models_own_win_one_by_one(load):
    params = load(
        "{models: {m: {source: x}}, targets: {stm32f746: {budget: {ram: 1MiB, regions: {dtcm: 32KiB, sram1: 1KiB}}, "
        "budgets: {m: {regions: {dtcm: 64KiB, sram1: null, sram2: 0}}}}}}"
    )
    declared, target = params.targets["stm32f746"], get_target("stm32f746")
    assert {each.name: each.room for each in declared.apply(target).memories if each.room} == {
        "dtcm": 32 << 10,
        "sram1": 1 << 10,
    }
    assert {each.name: each.room for each in declared.apply(target, "m").memories if each.room is not None} == {
        "dtcm": 64 << 10,
        "sram2": 0,
    }
    assert params.budget("m", "stm32f746") == Budget(ram=1 << 20)
    with pytest.raises(ConfigError, match="The target 'rp2040' has no memory 'dtcm'"):
        declared.apply(get_target("rp2040"))


@pytest.mark.parametrize("text", ["local", "local:4", "dask://host:8786", "dask://10.0.0.1:1/"])
def test_an_executor_is_of_this_machine_or_a_cluster(load, text):
    assert load(f"executor: {text}").executor == text
    assert load("executor:").executor is load("executor: {}").executor is load("").executor is None


def test_params_cannot_be_changed(load):
    with pytest.raises(ValueError, match="frozen"):
        load(FULL).search.seed = 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("modls: {}", "modls is unknown. Did you mean 'models'?"),
        ("models: {a: {source: x, shape: {x: [1]}}}", "models.a.shape is unknown. Did you mean 'shapes'?"),
        ("targets: {rpi4: {opt: fast}}", "targets.rpi4.opt should be 'size', 'balanced' or 'speed', not 'fast'."),
        ("targets: {rpi4: {index-checks: no}}", "targets.rpi4.index-checks should be 'fail', 'clamp' or 'off'"),
        ("targets: {rpi4: {threads: 0}}", "targets.rpi4.threads should be greater than 0, not 0."),
        ("targets: {rpi4: {threads: -2}}", "targets.rpi4.threads should be greater than 0, not -2."),
        ("targets: {rpi4: {threads: two}}", "targets.rpi4.threads should be a valid integer, not 'two'."),
        ("targets: {rpi4: {threads: 1.5}}", "targets.rpi4.threads should be a valid integer"),
        ("targets: {rpi4: {budgte: {ram: 1MiB}}}", "targets.rpi4.budgte is unknown. Did you mean 'budget'?"),
        ("targets: {rpi4: {budget: {rom: 1MiB}}}", "targets.rpi4.budget.rom is unknown. Did you mean 'ram'?"),
        (
            "targets: {t: {budget: {latency: 1.5x}}}",
            "targets.t.budget.latency: '1.5x' is not a time. Write it like 20ms",
        ),
        (
            "targets: {t: {budget: {latency: 10ns}}}",
            "targets.t.budget.latency: '10ns' is not a time. Write it like 20ms",
        ),
        ("targets: {t: {accepted-growth: {m: {ram: 1MiB}}}}", "targets.t.accepted-growth.m.reason is missing."),
        ("targets: {t: {budgets: {m: {falsh: 1MiB}}}}", "targets.t.budgets.m.falsh is unknown. Did you mean 'flash'?"),
        ("search: {evaluation: 3}", "search.evaluation is unknown. Did you mean 'evaluations'?"),
        ("verify: {case: 3}", "verify.case is unknown. Did you mean 'cases'?"),
        ("search: {max_extra_compute: 0.5}", "search.max_extra_compute is unknown. Did you mean 'max-extra-compute'?"),
        ("search: {max-extra-computes: 0.5}", "search.max-extra-computes is unknown. Did you mean 'max-extra-co"),
        ("track: {experimnt: x}", "track.experimnt is unknown. Did you mean 'experiment'?"),
    ],
)
def test_an_unknown_key_is_named_with_its_place_and_the_nearest_name(load, text, said):
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert said in str(caught.value)


def test_sections_of_the_repos_own_stages_are_left_to_them(load):
    text = "epochs: 3\n1: x\ntrain: {lr: 0.1}\nmodel: resnet\nmodels: {a: {source: a.onnx}}\n"
    assert load(text) == load("models: {a: {source: a.onnx}}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: {a: {}}", "models.a.source is missing"),
        ("models: {a: {source: 3}}", "models.a.source should be a valid string, not 3"),
        ("models: {a: {source: ''}}", "models.a.source: it is empty"),
        ("models: {a: }", "models.a should be a table"),
        ("models: [a]", "models should be a table"),
        ("models: {1: {source: x}}", "models: YAML reads a name there as a number, not as text: 1. Write it in quotes"),
        (
            "models: {0x1f: {source: x}}",
            "models: YAML reads a name there as a number, not as text: 31. Write it in quotes",
        ),
        ("models: {null: {source: x}}", "models: YAML reads a name there as no value, not as text: None. Write it in"),
        ("models: {true: {source: x}}", "models: YAML reads a name there as a truth value, not as text: "),
        ("models: {A_b: {source: x}}", "models.A_b: a model name"),
        ("models: {-b: {source: x}}", "models.-b: a model name"),
        ('models: {"b\\n": {source: x}}', "a model name"),
        ("models: {../b: {source: x}}", "models.../b: a model name"),
        ("executor: remote", "executor: 'remote' is not an executor. Write local, local:4, or dask://HOST:8786."),
        ("executor: dask://host", "executor: 'dask://host' is not an executor."),
        ("executor: local:0", "executor: 'local:0' is not an executor."),
        ("models: {a: {source: x, shapes: {x: [1, 0]}}}", "models.a.shapes.x: [1, 0] is not a shape"),
        ("models: {a: {source: x, shapes: {x: 1x-3}}}", "models.a.shapes.x: "),
        ("models: {a: {source: x, shapes: {x: [1, true]}}}", "models.a.shapes.x: "),
        ("models: {a: {source: x, outputs: y}}", "models.a.outputs: 'y' is not a list of names"),
        ("models: {a: {source: x, fix: {sr: {}}}}", "models.a.fix.sr: no input can be fixed to {}"),
        ("models: {a: {source: x, bounds: {boxes: 0}}}", "models.a.bounds.boxes should be greater than 0"),
        ("targets: {rpi4: {budget: {ram: 1MX}}}", "targets.rpi4.budget.ram: '1MX' is not a size: the unit"),
        ("targets: {rpi4: {budget: {ram: 1.5}}}", "targets.rpi4.budget.ram: 1.5 is not a size"),
        ("targets: {rpi4: {budget: {ram: true}}}", "targets.rpi4.budget.ram: True is not a size"),
        ("targets: {rpi4: {budget: {ram: -5}}}", "targets.rpi4.budget.ram: '-5' is not a size"),
        ("targets: {rpi4: {budget: {flash: 0}}}", "targets.rpi4.budget.flash: nothing fits in 0 bytes"),
        ("targets: {rpi4: {budget: 3}}", "targets.rpi4.budget should be a table"),
        (
            "targets: {rpi4: {accepted-growth: {q: {reason: r}}}}",
            "targets.rpi4.accepted-growth.q: there is no such model",
        ),
        ("targets: {rpi4: {budgets: {q: {ram: 1KiB}}}}", "targets.rpi4.budgets.q: there is no such model"),
        ("search: {evaluations: '3'}", "search.evaluations should be a valid integer, not '3'"),
        ("search: {evaluations: true}", "search.evaluations should be a valid integer, not True"),
        ("search: {evaluations: 0}", "search.evaluations should be greater than 0, not 0"),
        ("search: {max-extra-compute: -0.1}", "search.max-extra-compute should be greater than or equal to 0"),
        ("search: {max-extra-compute: .inf}", "search.max-extra-compute should be a finite number, not inf"),
        ("search: {max-extra-compute: .nan}", "search.max-extra-compute should be a finite number, not nan"),
        ("search: {max-slowdown: 0.9}", "search.max-slowdown should be greater than or equal to 1"),
        ("search: {max-slowdown: none}", "search.max-slowdown should be a valid number, not 'none'"),
        ("search: {objective: speed}", "search.objective should be"),
        ("search: {max-latency: 20}", "search.max-latency: 20 is not a latency limit"),
        ("search: {max-latency: fast}", "search.max-latency: 'fast' is not a latency limit"),
        ("search: {max-extra-compute: '25%'}", "search.max-extra-compute should be a valid number, not '25%'"),
        ("verify: {tolerance: -1.0}", "verify.tolerance should be greater than 0"),
        ("- a", "not a table"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(load, text, said):
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: {a: {source: x}}\nsearch: {\n", "params.yaml:3: malformed YAML"),
        ("search: {seed: *none}", "params.yaml:1: malformed YAML"),
        ("search:\n\tseed: 1", "params.yaml:2: malformed YAML"),
        ("search: {seed: 1}\nsearch: {seed: 2}", "params.yaml:2: the key 'search' is given twice"),
        ("search:\n  seed: 1\n  seed: 2\n", "params.yaml:3: the key 'seed' is given twice"),
        ("search: {}\n---\nverify: {}", "params.yaml:2: malformed YAML"),
        ("!!python/object/apply:os.getcwd []", "params.yaml:1: malformed YAML"),
        ("\x01", "malformed YAML"),
        ("search: 2020-13-45", "malformed YAML: month must be"),
        ("? [[a]]\n: c", "malformed YAML: unhashable"),
        ("%YAML 1.3\n---\nmodels: {}", "malformed YAML: version"),
        ("models:\n%YAML 9.9\n    - a: 1\n", "malformed YAML: "),
    ],
)
def test_malformed_yaml_is_named_with_its_line(load, text, said):
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert said in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match="no such file.*passfit init"):
        load_params(tmp_path / "params.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_params(tmp_path)
    (tmp_path / "params.yaml").write_bytes(b"search: \xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_params(tmp_path / "params.yaml")
    (tmp_path / "models").mkdir()
    with pytest.raises(ConfigError, match=f"no such file. Run it in '{tmp_path}'"):
        load_params(tmp_path / "models" / "params.yaml")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="a pipe"):
        load_params(tmp_path / "pipe")


def test_words_are_words_as_in_dvc(load):
    """YAML 1.1 would read `no` as false, and `1e-4` as text."""
    assert list(load("models: {no: {source: x}}").models) == ["no"]


def test_an_unknown_target_is_refused_with_the_nearest(load):
    params = load("targets: {rpi4: , rip-zero2: }")
    check_targets(params, ["rpi4", "rip-zero2"])
    with pytest.raises(ConfigError, match="targets.rip-zero2: there is no such target. Did you mean 'rpi-zero2'"):
        check_targets(params, ["rpi4", "rpi-zero2"])


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_any_text_is_read_or_refused_cleanly(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    try:
        load_params(path)
    except ConfigError as error:
        assert str(path) in str(error)


def test_importing_config_stays_cheap():
    code = (
        "import sys, passfit.params.params; print([m for m in ('tvm', 'mlflow', 'onnx', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_forms_of_ports_are_texts_or_tables(load):
    texts = load(
        "models: {m: {source: m.onnx, inputs: {x: 'uint8,nhwc,std=255'}, outputs: {y: argmax, z: }, io: int8}}"
    ).models["m"]
    tables = load(
        "models: {m: {source: m.onnx, inputs: {x: {dtype: uint8, layout: nhwc, std: 255}}, outputs: {y: {argmax: true}, z: {}}, io: int8}}"
    ).models["m"]
    assert texts == tables
    assert texts.inputs["x"].record == {"dtype": "uint8", "layout": "nhwc", "std": [255.0]} and texts.io == "int8"
    assert list(texts.outputs) == ["y", "z"] and texts.outputs["y"].argmax and not texts.outputs["z"].record


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("inputs: {x: {dtyp: uint8}}", "models.m.inputs.x.dtyp is unknown. Did you mean 'dtype'?"),
        ("inputs: {x: uint9}", "models.m.inputs.x: 'uint9' is not a form. Did you mean 'uint8'?"),
        ("inputs: {x: {mean: [a]}}", "models.m.inputs.x.mean: ['a'] is not a number."),
        ("inputs: {x: std=-1}", "models.m.inputs.x.std: -1 is not above 0 and within float32. Write another number."),
        ("inputs: {x: {std: [1, 0, 1]}}", "models.m.inputs.x.std: 0 is not above 0"),
        ("inputs: {x: mean=1e39}", "models.m.inputs.x.mean: not finite in float32. Write numbers up to 3.4e38."),
        ("inputs: {x: {mean: .nan}}", "models.m.inputs.x.mean: not finite"),
        ("inputs: {x: scale=1e-39}", "models.m.inputs.x.scale: 1e-39 is not above 0"),
        ("inputs: {x: scale=inf}", "models.m.inputs.x.scale: not finite"),
        ("inputs: {x: zero-point=1e12}", "models.m.inputs.x.zero-point should be less than 2147483648"),
        ("outputs: {y: scale=1:2}", "scale: [1, 2] is not a number. Write one."),
        ("outputs: {y: argmx}", "'argmx' is not a form. Did you mean 'argmax'?"),
        ("outputs: y", "is not a list of names"),
        ("io: int4", "models.m.io should be 'float' or 'int8'"),
    ],
)
def test_wrong_forms_of_ports_are_named_with_their_place(load, entry, says):
    with pytest.raises(ConfigError) as refused:
        load(f"models: {{m: {{source: m.onnx, {entry}}}}}")
    assert says in str(refused.value)
