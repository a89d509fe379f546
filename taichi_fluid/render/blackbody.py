"""The colour of hot things: Planck's law seen by the CIE 1931 observer, as linear sRGB.

The colour matching functions are the sums of lobes that Wyman, Sloan and Shirley (2013) fitted to them.
"""

import functools

import numpy as np

AMBIENT = 293.0
"""Temperature that a quantity "above ambient" counts from, K."""
COLDEST, HOTTEST, ENTRIES = 600.0, 6600.0, 256
"""Range of the table, K, and its length."""
REFERENCE = 1500.0
"""Temperature at which the glow is as bright as white paper in the light, K."""
COMPRESSION = 0.32
"""Power of the luminance that is shown: from 800 to 2000 K it grows a millionfold, more than any screen."""
_TO_SRGB = np.array([[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]])


def _lobe(wavelength, peak, below, above):
    t = (wavelength - peak) * np.where(wavelength < peak, below, above)
    return np.exp(-0.5 * t * t)


def colour_matching(wavelength: np.ndarray) -> np.ndarray:
    """x, y and z of the CIE 1931 observer at wavelengths in nm, ``(3, …)``."""
    return np.stack(
        [
            0.362 * _lobe(wavelength, 442.0, 0.0624, 0.0374)
            + 1.056 * _lobe(wavelength, 599.8, 0.0264, 0.0323)
            - 0.065 * _lobe(wavelength, 501.1, 0.0490, 0.0382),
            0.821 * _lobe(wavelength, 568.8, 0.0213, 0.0247) + 0.286 * _lobe(wavelength, 530.9, 0.0613, 0.0322),
            1.217 * _lobe(wavelength, 437.0, 0.0845, 0.0278) + 0.681 * _lobe(wavelength, 459.0, 0.0385, 0.0725),
        ]
    )


def tristimulus(temperature) -> np.ndarray:
    """X, Y and Z of black bodies at temperatures in K, ``(…, 3)``, in units of their own."""
    wavelength = np.arange(380.0, 781.0, 2.0)
    kelvin = np.asarray(temperature, dtype=float)[..., None]
    # Planck's law, W/m³ up to a factor; the second radiation constant is 1.4388e7 nm K.
    radiance = (wavelength / 560.0) ** -5 / np.expm1(1.4388e7 / (wavelength * kelvin))
    return radiance @ colour_matching(wavelength).T


def chromaticity(temperature) -> np.ndarray:
    """Linear sRGB of black bodies, ``(…, 3)``, the strongest channel 1; colours beyond the screen's lose the excess."""
    rgb = np.maximum(tristimulus(temperature) @ _TO_SRGB.T, 0.0)
    return rgb / rgb.max(axis=-1, keepdims=True)


@functools.cache
def glow_table() -> np.ndarray:
    """Light sent out at temperatures from COLDEST to HOTTEST, ``(ENTRIES, 3)``: compressed, 1 at REFERENCE."""
    kelvin = np.linspace(COLDEST, HOTTEST, ENTRIES)
    luminance = tristimulus(kelvin)[:, 1] / tristimulus(REFERENCE)[1]
    return (chromaticity(kelvin) * luminance[:, None] ** COMPRESSION).astype(np.float32)
