from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.passes.sequence.catalogue import CATALOGUE
from passfit.report.pictures.heat_map import LESS, MORE, heat_map

from ...profiles import examples

SVG = "{http://www.w3.org/2000/svg}"
TAIL = "legalize; fold-constant; fuse-operators{over=reduction}"
SPECS = (*sorted(CATALOGUE), TAIL)
BYTES = st.integers(-(10**9), 10**9)
KINDS = ("", "enables", "disables", "strengthens", "weakens")


def pair(first, second, kind="", ram=0, total=0, alone=0):
    delta = {"ram": ram + alone, "sum": total}
    return {"first": first, "second": second, "effect": kind, "delta": delta, "alone": {"ram": alone, "sum": 0}}


def profile(*pairs, specs=SPECS):
    return {"passes": [{"spec": spec} for spec in specs], "pairs": list(pairs)}


@st.composite
def profiles(draw):
    keys = draw(st.lists(st.tuples(st.sampled_from(SPECS), st.sampled_from(SPECS)), unique=True, max_size=30))
    values = st.tuples(st.sampled_from(KINDS), BYTES, BYTES, BYTES)
    return profile(*(pair(*key, *draw(values)) for key in keys if key[0] != key[1]))


def boxes(svg):
    """The cells with a tooltip."""
    return [rect for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect") if len(rect)]


def texts(svg):
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@settings(max_examples=examples(30))
@given(profiles())
def test_every_pair_is_a_cell_inside_the_picture_and_every_pass_in_one_is_named(found):
    svg = heat_map(found, "m @ t")
    assert svg == heat_map(found, "m @ t")
    assert len(boxes(svg)) == len(found["pairs"])
    root, seen = ElementTree.fromstring(svg), texts(svg)
    for rect in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + w <= float(root.get("width")) and y + h <= float(root.get("height"))
    shown = {spec for each in found["pairs"] for spec in (each["first"], each["second"])}
    assert {spec for spec in SPECS if spec in seen} == shown - {TAIL}
    assert ("fuse-operators{over=reduction}" in seen) == (TAIL in shown)


def test_the_largest_effects_have_the_full_colours_and_their_numbers():
    less, more = pair("order", "legalize", "strengthens", -2048), pair("legalize", "order", "weakens", 2048, alone=3)
    found = profile(less, more)
    svg = heat_map(found, "m @ t")
    colours = {rect[0].text.partition(":")[0]: rect.get("fill") for rect in boxes(svg)}
    assert colours == {
        "order strengthens legalize": "#{:02x}{:02x}{:02x}".format(*LESS),
        "legalize weakens order": "#{:02x}{:02x}{:02x}".format(*MORE),
    }
    assert "−2.0 KiB" in texts(svg) and "+2.0 KiB" in texts(svg)


def test_only_what_enables_or_disables_is_marked():
    key = heat_map(profile(pair("order", "legalize")), "m @ t").count("<path")
    for kind in KINDS:
        marks = heat_map(profile(pair("order", "legalize", kind)), "m @ t").count("<path") - key
        assert marks == (kind in ("enables", "disables"))


def test_equal_ram_with_another_sum_is_told():
    assert "Σ +300 B" in texts(heat_map(profile(pair("order", "legalize", "weakens", 0, 300)), "m @ t"))


def test_names_that_are_markup_are_escaped():
    svg = heat_map(profile(pair("<a>", '"b"&'), specs=("<a>", '"b"&')), "<m> & \x00")
    assert {"<a>", '"b"&', "<m> & \ufffd"} <= set(texts(svg))


def test_where_no_pass_bears_on_another_the_picture_says_so():
    assert texts(heat_map(profile(), "m @ t")) == ["m @ t", "no pass changes the effect of another one"]
