"""What STS is compared with: same encoder, bottleneck and decoder, another way to the tokens that the decoder reads.

The segment-wise SSM whose state is reset each segment is ``StackConfig(carry=False)``; the SSM over the whole
sequence with local decoders is the training path of STS itself (table 7).
"""

from longtake.methods.baselines.whole_video import WholeVideo as WholeVideo
from longtake.methods.baselines.whole_video import WholeVideoConfig as WholeVideoConfig
