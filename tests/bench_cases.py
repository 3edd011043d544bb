"""Small cases of each operation that the benchmark measures."""

from vkops.bench import workloads
from vkops.bench.workloads import Crop, EveryNth, Join, Permute, Split, case

VIEWS = {
    "split": case("float32", Split(1, (1, 3, 2)), (4, 6)),
    "split of rank 4": case("float32", Split(2, (2, 1, 3)), (1, 1, 6, 2)),
    "split of half words": case("uint16", Split(1, (2, 5)), (4, 7)),
    "split of many": case("float32", Split(0, (1,) * 64), (64,)),
    "join": case("float32", Join(1), *[(3, 4)] * 3),
    "join of bytes": case("uint8", Join(1), *[(5, 3)] * 3),
    "join of many": case("float32", Join(0), *[(16,)] * 64),
    "join of rank 5": case("int64", Join(2), *[(2, 1, 3, 2, 4)] * 2),
    "window": case("float32", Crop((1, 2), (3, 4)), (6, 7)),
    "steps": case("float32", EveryNth((2, 3)), (7, 9)),
    "steps back": case("float64", EveryNth((-2, 3)), (7, 9)),
    "reverse": case("float32", EveryNth((-1, -1)), (5, 6)),
    "reverse of bytes": case("uint8", EveryNth((-1, -1)), (5, 5)),
    "transpose": case("float32", Permute((1, 0)), (5, 6)),
    "transpose of bytes": case("uint8", Permute((1, 0)), (5, 7)),
    "permute": case("float32", Permute((7, 3, 5, 1, 6, 2, 4, 0)), (2, 3, 4, 5, 2, 3, 2, 2)),
}
MOVEMENTS = {
    "gather": case("float32", workloads.Gather(), (9, 4), (5,)),
    "gather elements": case("float32", workloads.GatherElements(), (4, 5), (4, 3)),
    "scatter rows": case("float32", workloads.ScatterRows(), (9, 4), (5, 1), (5, 4)),
    "pad": case("float32", workloads.PadReflect(1), (2, 3, 4, 5)),
    "depth to space": case("float32", workloads.DepthToSpace(2), (2, 8, 3, 2)),
    "tile": case("float32", workloads.Tile((2, 3)), (3, 4)),
    "upsample": case("float32", workloads.Upsample(2), (2, 3, 4, 5)),
    "one-hot": case("uint8", workloads.OneHot(6), (7, 1), (1, 2)),
    "reverse sequences": case("float32", workloads.ReverseSequences(), (3, 5, 2), (3,)),
}
