"""pure-LDP: how often the first entry of histogram encoding is no multiple of 2**-53."""

import warnings

warnings.filterwarnings("ignore")
from pure_ldp.frequency_oracles import HEClient  # noqa: E402

client = HEClient(epsilon=1.0, d=4)
for value in (1, 2):
    fine = sum(float(client.privatise(value)[0]) * 2.0**53 % 1 != 0 for _ in range(20_000))
    print(f"value {value}: {fine} of 20000")
