"""Pixels to tokens: frame encoders, the bottleneck that keeps a few tokens per frame, the video transformer."""

from longtake.vision.bottleneck import Bottleneck as Bottleneck
from longtake.vision.bottleneck import BottleneckConfig as BottleneckConfig
from longtake.vision.encoder import ConvEncoder as ConvEncoder
from longtake.vision.encoder import EncoderConfig as EncoderConfig
from longtake.vision.encoder import TransformersEncoder as TransformersEncoder
from longtake.vision.encoder import build_encoder as build_encoder
from longtake.vision.tubelet import TubeletConfig as TubeletConfig
from longtake.vision.tubelet import places_in as places_in
from longtake.vision.video_transformer import VideoTransformer as VideoTransformer
from longtake.vision.video_transformer import VideoTransformerConfig as VideoTransformerConfig
