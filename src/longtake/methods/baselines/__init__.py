"""What the methods are compared with.

STS: same encoder, bottleneck and decoder, another way to the tokens that the decoder reads. Streaming DVC is a stream
model of its own, in ``sdc.py``. The segment-wise SSM whose state is reset each segment is ``StackConfig(carry=False)``;
the SSM over the whole sequence with local decoders is the training path of STS itself (table 7).

MC-ViT: the parts that MeMViT and late temporal fusion add to the same video transformer; ``MemoryConfig.variant`` names
them as it names the variants without parameters of their own.
"""

from longtake.methods.baselines.late_fusion import LateFusion as LateFusion
from longtake.methods.baselines.memvit import MemoryPool as MemoryPool
from longtake.methods.baselines.whole_video import WholeVideo as WholeVideo
from longtake.methods.baselines.whole_video import WholeVideoConfig as WholeVideoConfig
