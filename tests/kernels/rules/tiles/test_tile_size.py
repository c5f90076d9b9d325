"""Check the sizes of register tiles: pure arithmetic."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from passfit.kernels.rules.tiles.tile_size import Rows, Tile, TileSpace
from passfit.support.divisors import divisors
from passfit.targets import Machine

_EXTENTS = st.integers(1, 200)


def best_tile(*arguments, **options) -> Tile | None:
    """Return the first of the tiles; None if units are too large."""
    return next(iter(TileSpace(*arguments, **options).tiles()), None)


@given(
    _EXTENTS,
    st.lists(_EXTENTS, max_size=2),
    st.integers(1, 1000),
    st.booleans(),
    st.booleans(),
    st.sampled_from(
        [Machine(), Machine(4, 16, by_element=True), Machine(1, 20), Machine(32, 8, by_element=True, lmul=4)]
    ),
)
def test_a_tile_divides_its_extents_and_fits_the_registers(width, extents, steps, vectors, scattered, machine):
    rows = [Rows(extent) for extent in extents]
    tile = best_tile(width, rows, steps, vectors=vectors, scattered=scattered, machine=machine)
    assert tile is not None and width % tile.width == 0
    assert all(extent % rows == 0 for extent, rows in zip(extents, tile.rows, strict=True))
    assert tile.accumulators <= machine.registers_of(tile.lanes) - 2
    assert tile.lanes in ((1, 2, 4, 8, 16, 32) if vectors else (1,)) and tile.lanes <= machine.lanes


@given(_EXTENTS, st.lists(_EXTENTS, max_size=2), st.integers(1, 1000), st.booleans(), st.booleans())
def test_what_is_left_over_is_taken_where_it_promises_more(width, extents, steps, scattered, shared):
    rows, options = [Rows(extent) for extent in extents], {"vectors": True, "scattered": scattered, "shared": shared}
    even = best_tile(width, rows, steps, **options)
    for tile in TileSpace(width, rows, steps, uneven=True, **options).tiles():
        assert tile.width <= width and all(count <= extent for count, extent in zip(tile.rows, extents))
        assert all(extent % count == 0 for count, extent in zip(tile.rows[:-1], extents))
        divides = all(extent % count == 0 for count, extent in zip((tile.width, *tile.rows), (width, *extents)))
        assert tile.even == divides and tile.accumulators <= Machine().registers - 2
    best = best_tile(width, rows, steps, uneven=True, **options)
    assert best == even or (not best.even and best.cycles < even.cycles)


def test_a_convolution_of_common_size_fills_the_registers():
    tile = best_tile(64, [Rows(56), Rows(56)], steps=576, vectors=True, scattered=True)
    assert tile is not None and tile.accumulators >= 8


def test_a_vector_by_matrix_product_keeps_several_sums_going():
    tile = best_tile(256, [], steps=1000, vectors=True, scattered=False)
    assert tile is not None and tile.accumulators == 8


def test_windows_stay_together():
    tile = best_tile(32, [Rows(5, 2), Rows(7, 2)], steps=100, vectors=True, scattered=True)
    assert tile is not None and all(rows % 2 == 0 for rows in tile.rows)


@given(st.integers(1, 500), st.integers(0, 100))
def test_divisors_are_all_of_them(extent, largest):
    assert divisors(extent, largest) == [size for size in range(1, largest + 1) if extent % size == 0]


def test_scattered_results_that_are_neighbours_cost_less_in_blocks_of_four():
    wide = Machine(lanes=16, transposes=True)
    options = {"steps": 27, "vectors": True, "scattered": True, "machine": wide}
    for rows in (4, 8):
        apart, abreast = (best_tile(16, [Rows(rows)], abreast=each, **options) for each in (False, True))
        assert abreast.cycles < apart.cycles
    assert best_tile(64, [Rows(8)], abreast=True, **options).rows[-1] % 4 == 0
    blind = replace(wide, transposes=False)
    assert best_tile(16, [Rows(8)], abreast=True, **{**options, "machine": blind}) == best_tile(
        16, [Rows(8)], **{**options, "machine": blind}
    )


def test_vectors_that_start_anywhere_in_a_line_cost_more():
    options = {"steps": 512, "vectors": True, "scattered": False, "machine": Machine(lanes=16, l1_bytes=40960)}
    assert best_tile(64, [Rows(8)], ragged=True, **options).cycles > best_tile(64, [Rows(8)], **options).cycles


def test_bytes_made_floats_one_by_one_cost_more_than_in_vectors():
    options = {"vectors": True, "scattered": False}
    plain, vectors, scalars = (
        best_tile(64, [Rows(48)], 320, converts=converts, **options).cycles
        for converts in ((False, False), (True, False), (False, True))
    )
    assert plain < vectors < scalars


def test_of_tiles_that_cost_the_same_the_most_alike_are_taken():
    options = {"vectors": True, "scattered": True, "machine": Machine(lanes=16, registers=32), "uneven": True}
    tile = best_tile(272, [Rows(2)], 512, **options)
    assert tile.groups == 9, "9 and 8 vectors, rather than 14 and 3"
