"""Small ONNX models that cost as much as possible."""

import numpy as np
import onnx
from onnx import numpy_helper


def model(lines, size=4096, **initializers):
    """A model of nodes, in ONNX's text form, that take x and make y."""
    nodes = "\n".join(lines)
    header = '<ir_version: 9, opset_import: ["" : 18]>'
    proto = onnx.parser.parse_model(f"{header} g (float[{size}] x) => (float y) {{ {nodes} }}")
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    for name, values in initializers.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
    return proto


def chain(count, step):
    """The lines of a chain from x to y, given those of step {n} from tensor {a} to tensor {b}."""
    names = ["x", *(f"t{n}" for n in range(1, count)), "y"]
    return [step.format(n=n, next=n + 1, a=names[n], b=names[n + 1]) for n in range(count)]


def doubled(count):
    """Each tensor is the one before, twice."""
    return model(chain(count, "{b} = Concat <axis = 0> ({a}, {a})"), size=2)


def doubled_and_cut(count):
    """Twice the tensor before, and every other element of that."""
    step = """c{n} = Concat <axis = 0> ({a}, {a})
        {b} = Slice (c{n}, s, e, a, d)"""
    return model(chain(count, step), 4095, s=[1], e=[2**31], a=[0], d=[2])


def interleaved(count):
    """The tensor before, cut at an odd place, its halves interleaved."""
    step = """l{n}, h{n} = Split <axis = 0> ({a}, n)
        c{n} = Concat <axis = 0> (h{n}, l{n})
        d{n} = Slice (c{n}, s0, e0)
        m{n} = Reshape (d{n}, r)
        p{n} = Transpose <perm = [1, 0]> (m{n})
        q{n} = Reshape (p{n}, f)
        {b} = Concat <axis = 0> (q{n}, one)"""
    one = np.zeros(1, np.float32)
    sizes = {"n": [1365, 2731], "r": [1365, 3], "f": [-1], "s0": [1], "e0": [2**31]}
    return model(chain(count, step), one=one, **sizes)


def shuffled(count):
    """The tensor before in 256 parts, put together in another order, again and again."""
    parts = 256
    result = [f"p{{n}}_{i}" for i in range(parts)]
    order = [result[i] for i in np.random.default_rng(0).permutation(parts)]
    step = f"""{", ".join(result)} = Split <axis = 0> ({{a}}, n)
        {{b}} = Concat <axis = 0> ({", ".join(order)})"""
    sizes = [4096 // parts + (1 if i % 2 else -1) for i in range(parts)]
    return model(chain(count, step), n=sizes)


def sequence(count):
    """So many parts of one tensor in a sequence, put together again."""
    lines = ["s = SplitToSequence <axis = 0> (x, one)", "y = ConcatFromSequence <axis = 0> (s)"]
    return model(lines, count, one=1)


def indexed(count):
    """Elements of the tensor before, which indices choose that only the device reads."""
    lines = ["i = Reshape (n, s)", *chain(count, "{b} = Gather <axis = 0> ({a}, i)")]
    proto = model(lines, 64, s=[-1])
    shape = onnx.helper.make_tensor_value_info("n", onnx.TensorProto.INT64, [8, 8])
    proto.graph.input.append(shape)
    return proto


def scattered(count):
    """A tensor with other elements in places that indices choose, again and again, all joined."""
    lines = [f"s{step} = ScatterElements <axis = 0> (x, i, x)" for step in range(count)]
    lines.append(f"y = Concat <axis = 0> ({', '.join(f's{step}' for step in range(count))})")
    return model(lines, 64, i=np.arange(64)[::-1])


def computed(count):
    """Sums of large constants, on the host."""
    lines = ["c0 = ConstantOfShape <value = int64[1] {1}> (n)"]
    lines += [f"c{step + 1} = Add (c{step}, c{step})" for step in range(count)]
    return model([*lines, "y = Identity (x)"], n=[1 << 22])


def looked_up(count):
    """A shape made in a long chain of constants, needed at each step."""
    step = """l{n} = Concat <axis = 0> (s{n}, one)
        s{next} = Slice (l{n}, b, e)
        {b} = Reshape ({a}, s{next})"""
    return model(chain(count, step), s0=[4096], one=[1], b=[0], e=[1])


def nothing(count):
    """Tensors without elements, joined and repeated."""
    steps = chain(count, "{b} = Concat <axis = 0> ({a}, {a}, {a})")
    steps[::2] = chain(count, "{b} = Tile ({a}, many)")[::2]
    steps[:1] = chain(count, "{b} = Slice ({a}, b, b)")[:1]
    return model(steps, b=[0], many=[2**40])


def read_across(count):
    """Columns of two tensors side by side, read with a stride that goes along neither."""
    wide = 2 * count + 1
    lines = """a = Expand (x, column)
        b = ConstantOfShape (rest)
        c = Concat <axis = 1> (a, b)
        f = Reshape (c, flat)
        y = Slice (f, b1, e1, a1, d1)"""
    sizes = {"column": [count, 1], "rest": [count, wide - 1], "flat": [-1]}
    return model([lines], 1, **sizes, b1=[0], e1=[2**62], a1=[0], d1=[wide - 1])
