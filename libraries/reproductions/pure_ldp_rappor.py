"""pure-LDP: RAPPOR never clears a bit of the value."""

import warnings

warnings.filterwarnings("ignore")
from pure_ldp.frequency_oracles import RAPPORClient, RAPPORServer  # noqa: E402

server = RAPPORServer(f=0.5, m=16, k=1, d=8, num_of_cohorts=1)
client = RAPPORClient(0.5, 16, server.hash_family, num_of_cohorts=1)
(bit,) = (hashed("1") for hashed in server.hash_family[0])  # the bit of the value 2, index 1
for value in (2, 3):
    ones = sum(client.privatise(value)[0][bit] for _ in range(10_000))
    print(f"value {value}: bit {bit} is 1 in {ones} of 10000 reports")
print(f"ε = {client.convert_f_to_eps(0.5, 1):.3f}; the bit should be 1 with probability 0.75")
