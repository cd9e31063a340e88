//! Metrics of frames, as players know them; the guide has the source of each definition.

use load::latency::Quantile;
use model::{Better, MetricDef};

const fn rate(name: &'static str, text: &'static str) -> MetricDef {
    MetricDef {
        name,
        unit: "1/s",
        better: Better::Higher,
        text,
    }
}

const fn per_minute(name: &'static str, text: &'static str) -> MetricDef {
    MetricDef {
        name,
        unit: "1/min",
        better: Better::Lower,
        text,
    }
}

const fn time(name: &'static str, text: &'static str) -> MetricDef {
    MetricDef {
        name,
        unit: "ns",
        better: Better::Lower,
        text,
    }
}

/// Average rate.
pub const FPS_AVERAGE: MetricDef = rate(
    "fps_average",
    "New frames that were shown in the window, per second.",
);
/// Rate of the slowest hundredth.
pub const FPS_1_PERCENT_LOW: MetricDef = rate(
    "fps_1_percent_low",
    "Rate of the slowest 1 % of the frames together: one over the mean of the longest 1 % of the times that \
     a picture stayed on the screen, at least one of them (MangoHud 0.7; CapFrameX's 1 % low average).",
);
/// Rate of the slowest thousandth.
pub const FPS_0_1_PERCENT_LOW: MetricDef = rate(
    "fps_0_1_percent_low",
    "Rate of the slowest 0.1 % of the frames together, otherwise as `fps_1_percent_low`.",
);
/// Rate at the border of the slowest hundredth.
pub const FPS_P1: MetricDef = rate(
    "fps_p1",
    "Rate of the one frame that 1 % of the frames are as slow as: the 1 % low of MangoHud from 0.8 on. Its \
     values are the rate of the screen over a whole number.",
);
/// Vblanks that showed the old picture again.
pub const MISSED: MetricDef = per_minute(
    "missed_frames_per_min",
    "Vblanks of the window at which no new frame was done, so that the old one was shown again, per minute.",
);
/// Longest time of one picture.
pub const LONGEST_FREEZE: MetricDef = time(
    "longest_freeze",
    "Longest time in the window for which one picture stayed on the screen; where nothing is missed, the time \
     of one frame.",
);
/// Audio periods that were not filled in time.
pub const UNDERRUNS: MetricDef = per_minute(
    "underruns_per_min",
    "Times that the audio thread had not filled the next period when the device had played the last one, per \
     minute. The stream starts again when the thread is back, as ALSA's does, so a long stall is one.",
);
/// Jobs of the worker pool.
pub const COMPILED: MetricDef = rate(
    "compiled_per_sec",
    "Jobs of the worker pool that were done in the window, per second (`compilers` only).",
);

const RENDER_P50: MetricDef = time(
    "render_p50",
    "Median render time: from the vblank at which a frame begins until it is done.",
);
const RENDER_P99: MetricDef = time("render_p99", "99th percentile of render time.");
const RENDER_MAX: MetricDef = time("render_max", "Longest render time in the window.");
const INPUT_P50: MetricDef = time(
    "input_p50",
    "Median input latency: from an input event until the vblank at which the first frame that began after it is \
     shown.",
);
const INPUT_P99: MetricDef = time("input_p99", "99th percentile of input latency.");
const INPUT_MAX: MetricDef = time("input_max", "Longest input latency in the window.");
const AUDIO_P99: MetricDef = time(
    "audio_p99",
    "99th percentile of the time from the end of an audio period until the next one is filled.",
);
const AUDIO_MAX: MetricDef = time(
    "audio_max",
    "Longest time from the end of an audio period until the next one is filled.",
);

/// All metrics.
pub const METRICS: &[MetricDef] = &[
    FPS_AVERAGE,
    FPS_1_PERCENT_LOW,
    FPS_0_1_PERCENT_LOW,
    FPS_P1,
    MISSED,
    LONGEST_FREEZE,
    RENDER_P50,
    RENDER_P99,
    RENDER_MAX,
    INPUT_P50,
    INPUT_P99,
    INPUT_MAX,
    UNDERRUNS,
    AUDIO_P99,
    AUDIO_MAX,
    COMPILED,
];

/// Metrics that decide: how often it stutters and how badly, and how soon a hand is answered.
pub const DECIDING: &[&str] = &["missed_frames_per_min", "fps_1_percent_low", "input_p99"];

/// Quantiles of render time.
pub const RENDER: &[Quantile] = &[
    (RENDER_P50, Some(500)),
    (RENDER_P99, Some(990)),
    (RENDER_MAX, None),
];
/// Quantiles of input latency.
pub const INPUT: &[Quantile] = &[
    (INPUT_P50, Some(500)),
    (INPUT_P99, Some(990)),
    (INPUT_MAX, None),
];
/// Quantiles of the times of the audio thread.
pub const AUDIO: &[Quantile] = &[(AUDIO_P99, Some(990)), (AUDIO_MAX, None)];
