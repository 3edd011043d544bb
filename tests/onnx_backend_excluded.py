"""ONNX's own tests that vkops is to fail, by pattern: the reason, and what the error says.

A test here that passes fails the run, and so does one that fails for another reason.
"""

_COMPUTES = "vkops moves data, and computes only with constants, shapes, and short lists of"

EXCLUDED = {
    # Arithmetic on what graph inputs hold is no data movement. (test_div_int32_trunc and most of
    # test_mod are missing here: they have short lists of integers, which may be shapes.)
    r"^test_(add|sub|mul)(_example|_bcast|_u?int\d+)?$": _COMPUTES,
    r"^test_div(_example|_bcast|_u?int(8|16)|_uint(32|64))?$": _COMPUTES,
    r"^test_(equal|where|less|greater|not|and|or|xor)|^test_mod_(broadcast|.*float)": _COMPUTES,
    r"^test_operator_add|^test_operator_non_float_params$": _COMPUTES,
    r"^test_range_b?float": _COMPUTES,
    r"^test_rotary_embedding_.*expanded$": _COMPUTES,
    # So are indices of a type that the device cannot read as such.
    r"^test_onehot_with_(negative_)?axis$": _COMPUTES,
    # So is combining elements.
    r"^test_scatter_elements_with_(duplicate_indices|reduction_.*)$": "vkops moves data, it does not compute",
    r"^test_scatternd_(add|max|min|multiply)": "vkops moves data, it does not compute",
    # So is interpolation.
    r"^test_resize_(.*(cubic|linear)|tf_crop_and_resize(_axes_\d_\d|_extrapolation_value)?$)": "vkops moves data, it does not interpolate",
    # So is conversion to another type.
    r"^test_cast_": _COMPUTES,
    r"^test_clip_(?!default_(int8_)?inbounds).*expanded$|^test_loop11$": _COMPUTES,
    r"^test_sequence_map_add.*expanded$": _COMPUTES,
    # So is training.
    r"^test_training_dropout": "vkops does not train",
    # These also have the operators of optional values, which vkops does not have.
    r"^test_if_opt$": "(Optional): vkops does not have this operator",
    r"^test_loop16_seq_none$": "(OptionalHasElement): vkops does not have this operator",
    r"^test_castlike_.*_expanded$": _COMPUTES,
    # So is an index modulo a size.
    r"^test_tensorscatter_circular$": "vkops does not write around the end of an axis",
}
