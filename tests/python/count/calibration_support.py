"""What the tests of calibration share: pairs, and a calibration that has seen them."""

from hypothesis import strategies as st

from budgeteer import Calibration

MODEL = "chars_div4"
COUNTS = st.integers(1, 300_000) | st.integers(1, 1 << 25)


@st.composite
def pairs_of(draw, max_size=90):
    """Return pairs that are accepted: near a line, or anywhere."""
    scale, frame = draw(st.floats(0.2, 3.9)), draw(st.integers(0, 100_000))

    def bill(size):
        near = int(size * scale) + frame + 1
        anywhere = st.integers(-(-size // 10), 4 * size + 131_072)
        return draw(anywhere if draw(st.integers(0, 9)) == 0 else st.just(near))

    sizes = draw(st.lists(COUNTS, min_size=1, max_size=max_size))
    return [(size, max(-(-size // 10), min(4 * size + 131_072, bill(size)))) for size in sizes]


def taught(pairs, *, quantile=0.99, model=MODEL):
    calibration = Calibration(quantile=quantile)
    for estimated, billed in pairs:
        calibration.observe(estimated, billed, model=model)
    return calibration
