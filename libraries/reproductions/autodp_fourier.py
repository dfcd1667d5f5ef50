"""autodp: ε of composed Gaussian noise by the Fourier accountant, and by the exact formula."""

import contextlib
import io
import warnings

import scipy
from autodp.mechanism_zoo import GaussianMechanism
from autodp.transformer_zoo import ComposeAFA, ComposeGaussian

warnings.filterwarnings("ignore")
print(f"SciPy {scipy.__version__}, ε at δ = 0.001")
for times in (1, 4, 16):
    fourier = ComposeAFA()([GaussianMechanism(2.0, phi_off=False)], [times])
    exact = ComposeGaussian()([GaussianMechanism(2.0)], [times])
    with contextlib.redirect_stdout(io.StringIO()):
        epsilon = fourier.get_eps(1e-3)
    print(f"{times} times: ComposeAFA {epsilon:.4f}, ComposeGaussian {exact.get_eps(1e-3):.4f}")
