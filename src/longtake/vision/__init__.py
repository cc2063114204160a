"""Pixels to tokens: frame encoders and the bottleneck that keeps a few tokens per frame."""

from longtake.vision.bottleneck import Bottleneck as Bottleneck
from longtake.vision.bottleneck import BottleneckConfig as BottleneckConfig
from longtake.vision.encoder import ConvEncoder as ConvEncoder
from longtake.vision.encoder import EncoderConfig as EncoderConfig
from longtake.vision.encoder import TransformersEncoder as TransformersEncoder
from longtake.vision.encoder import build_encoder as build_encoder
