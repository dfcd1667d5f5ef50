"""pure-LDP: the ε of an oracle before and after it is given to a client for heavy hitters."""

import warnings

warnings.filterwarnings("ignore")
from pure_ldp.frequency_oracles import DEClient  # noqa: E402
from pure_ldp.heavy_hitters.prefix_extending.pem_client import PEMClient  # noqa: E402
from pure_ldp.heavy_hitters.treehistogram.treehist_client import TreeHistClient  # noqa: E402

prefix = PEMClient(1.0, 0, 6, 2, fo_client=DEClient(3.0, 4))
tree = TreeHistClient(1.0, 2, 6, fo_client=DEClient(3.0, 4))
print(f"PEMClient(epsilon=1): the oracle has ε = {prefix.client.epsilon}")
print(f"TreeHistClient(epsilon=1): two reports with ε = {tree.client.epsilon} each")
