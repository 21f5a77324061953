"""Types of arrays, by short names."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
#: Of a type with named fields.
Records: TypeAlias = NDArray[np.void]
#: Of a type that is known only at run time, such as a column that is chosen by its name.
AnyArray: TypeAlias = NDArray[Any]
