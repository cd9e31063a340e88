//! The slots of bpf/intf.h.

const SUB_BITS: u32 = 6;
const SUB: u32 = 1 << SUB_BITS;
pub const SLOTS: u32 = 37 * SUB;

/// The lowest number of nanoseconds in a slot.
pub fn lowest(slot: u32) -> u64 {
    match slot.checked_sub(SUB) {
        None => u64::from(slot),
        Some(above) => u64::from(SUB + above % SUB) << (above / SUB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_follow_each_other_and_are_at_most_a_64th_wide() {
        for slot in 0..SLOTS - 1 {
            let (low, next) = (lowest(slot), lowest(slot + 1));
            assert!(next > low, "slot {slot}");
            assert!((next - low) as f64 <= (low as f64 / 64.0).max(1.0));
        }
        assert_eq!(lowest(SLOTS - 1), 127 << 35);
    }
}
