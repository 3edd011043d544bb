"""Base of the operators that resample: UPSAMPLE_2D, and RESAMPLE in its versions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from vkops.dml.enums import InterpolationMode
from vkops.dml.operator_desc import OperatorDesc
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region
from vkops.plan.movements import Run
from vkops.plan.resampling import resample


class NearestNeighborDesc(OperatorDesc):
    """Base of operators that copy to each element of the output the nearest one of the input."""

    input_tensor: BufferTensorDesc
    output_tensor: BufferTensorDesc
    interpolation_mode: InterpolationMode

    def _check_interpolation_mode(self, rule: str) -> None:
        mode = self.interpolation_mode
        if mode is not InterpolationMode.NEAREST_NEIGHBOR:
            message = (
                f"got {mode.name}, which calculates: vkops moves data; must be NEAREST_NEIGHBOR"
            )
            self._refuse("interpolation_mode", message, rule)

    @abstractmethod
    def _runs(self) -> Sequence[Sequence[Run]]:
        """The indices of the input that each dimension of the output copies."""

    def _regions(self) -> Sequence[Sequence[Region]]:
        source, target = Read(0, self.input_tensor.view), self.output_tensor.view
        return [[*resample(source, target, self._runs())]]
