//! Error that a session may spend on many questions, one after the other.
//!
//! Somebody who tries twenty changes that change nothing, each judged at an error rate of 5 %, finds a
//! better one in 17 of 100 sessions, and in 59 where three runs a side decide by eye (simulated). Here a
//! session has [`OF_SESSION`] for all of its questions together. Each question takes a [`SHARE`] of what
//! is left as its own error rate, **before** it is measured. What was accepted gives its price back, all
//! else does not.
//!
//! The chance that a session accepts *anything* that is not better is at most [`OF_SESSION`], whatever
//! else it accepts and whoever chooses its questions. Let `a_t` be the price of question `t`, and let a
//! question be false if nothing is better. Until the first false acceptance no false question has given
//! its price back, and no more is ever paid than there was, so on every path
//!
//! ```text
//! Σ { a_t : t false, asked before the first false acceptance is known } ≤ OF_SESSION
//! ```
//!
//! Question `t` is measured on blocks that are drawn after it was asked, so given all that was known
//! then it is accepted falsely with a chance of at most `a_t` (Ville's inequality). The chance that
//! it is the *first* false acceptance, summed over all questions, is at most the mean of that sum. Nothing
//! is used of how questions depend on each other, and questions may overlap in time. This is the online
//! fallback procedure (Tian and Ramdas, "Online control of the familywise error rate", 2021) with a price
//! that follows what is left.
//!
//! Evidence grows by a factor with each block. So to be ten times as careful costs a number of
//! blocks, and not ten times the blocks.

/// Error of a whole session.
pub const OF_SESSION: f64 = 0.05;
/// Part of what is left that the next question takes.
pub const SHARE: f64 = 0.1;
/// Part of the whole below which nothing more can be asked: a price so small would take more blocks
/// than anybody measures.
pub const LEAST: f64 = 0.01;

/// Error that is left in a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wealth {
    whole: f64,
    left: f64,
}

impl Wealth {
    /// Wealth of a session that has asked nothing yet.
    pub fn new_session(whole: f64) -> Wealth {
        Wealth { whole, left: whole }
    }

    /// Error that is left.
    pub fn left(&self) -> f64 {
        self.left
    }

    /// Error rate of the next question; none where too little is left for one.
    pub fn next_price(&self) -> Option<f64> {
        (self.left >= LEAST * self.whole).then_some(self.left * SHARE)
    }

    /// Number of questions that can still be asked if none of them is accepted.
    pub fn count_questions(&self) -> u32 {
        let mut rest = *self;
        let prices = std::iter::from_fn(|| {
            let price = rest.next_price()?;
            rest.pay_price(price);
            Some(())
        });
        u32::try_from(prices.count()).unwrap_or(u32::MAX)
    }

    /// Takes the price of a question that is asked now.
    pub fn pay_price(&mut self, price: f64) {
        self.left = (self.left - price).max(0.0);
    }

    /// Gives the price of a question back that was accepted, or of which nothing was measured.
    pub fn return_price(&mut self, price: f64) {
        self.left = (self.left + price).min(self.whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_session_ends_after_as_many_questions_as_it_says() {
        let mut wealth = Wealth::new_session(OF_SESSION);
        let said = wealth.count_questions();
        let mut asked = 0;
        while let Some(price) = wealth.next_price() {
            wealth.pay_price(price);
            asked += 1;
        }
        assert_eq!((asked, said), (44, 44));
        assert_eq!(wealth.count_questions(), 0);
    }

    #[test]
    fn who_asks_only_what_is_accepted_never_runs_out() {
        let mut wealth = Wealth::new_session(OF_SESSION);
        for _ in 0..1000 {
            let price = wealth.next_price().unwrap();
            wealth.pay_price(price);
            wealth.return_price(price);
        }
        assert!((wealth.left() - OF_SESSION).abs() < 1e-12);
    }

    proptest! {
        /// The sum of the proof, on any path: prices that did not come back are never more than the whole.
        #[test]
        fn what_was_paid_and_not_returned_is_never_more_than_the_whole(
            accepted in prop::collection::vec(any::<bool>(), 1..200),
        ) {
            let mut wealth = Wealth::new_session(OF_SESSION);
            let mut spent = 0.0;
            for accepted in accepted {
                let Some(price) = wealth.next_price() else { break };
                wealth.pay_price(price);
                if accepted {
                    wealth.return_price(price);
                } else {
                    spent += price;
                }
                prop_assert!(spent <= OF_SESSION + 1e-12);
                prop_assert!((spent + wealth.left() - OF_SESSION).abs() < 1e-12);
            }
        }
    }
}
