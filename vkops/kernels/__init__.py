"""Kernels that compute: reductions, scans and sorts of elements of arrays."""

from vkops.kernels import random as random
from vkops.kernels.compaction import compress as compress
from vkops.kernels.compaction import nonzero as nonzero
from vkops.kernels.compaction import unique as unique
from vkops.kernels.counts import bincount as bincount
from vkops.kernels.counts import histogram as histogram
from vkops.kernels.counts import searchsorted as searchsorted
from vkops.kernels.functions import all as all
from vkops.kernels.functions import any as any
from vkops.kernels.functions import argmax as argmax
from vkops.kernels.functions import argmin as argmin
from vkops.kernels.functions import count_nonzero as count_nonzero
from vkops.kernels.functions import max as max
from vkops.kernels.functions import mean as mean
from vkops.kernels.functions import min as min
from vkops.kernels.functions import prod as prod
from vkops.kernels.functions import sum as sum
from vkops.kernels.functions import var as var
from vkops.kernels.scan import cumprod as cumprod
from vkops.kernels.scan import cumsum as cumsum
from vkops.kernels.scattering import scatter_add as scatter_add
from vkops.kernels.sort import argsort as argsort
from vkops.kernels.sort import partition as partition
from vkops.kernels.sort import sort as sort
from vkops.kernels.sort import topk as topk
