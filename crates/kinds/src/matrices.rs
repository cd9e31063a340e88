//! The work of a request: naive multiplication of integer matrices of a set footprint.
//!
//! Work is counted in rows of the product, not in whole matrices, so that a handicap
//! of one percent is one percent. The arithmetic is on integers because one hypervisor
//! under test corrupts floating point of its guests.

use std::sync::atomic::{AtomicU64, Ordering};

/// One worker's matrices, left × right = product, one behind the other.
///
/// The product is stored to after every step of a sum, as schbench's compiled code
/// does. Relaxed atomics cost what plain loads and stores cost, and the optimizer
/// leaves each of them in place, so that the work is the same in every build.
#[derive(Debug)]
pub struct Matrices {
    size: usize,
    cells: Box<[AtomicU64]>,
    next_row: usize,
}

impl Matrices {
    /// Three square matrices that fit in `footprint_bytes`, of size 1 at least.
    ///
    /// All of them are written here. schbench never writes the two that it reads: the
    /// kernel maps its one page of zeros for them, and the footprint is a third of
    /// what was asked for.
    pub fn new(footprint_bytes: u64) -> Self {
        let size = side(footprint_bytes);
        let count = 3 * (size * size) as u64;
        Matrices {
            size,
            cells: (1..=count).map(AtomicU64::new).collect(),
            next_row: 0,
        }
    }

    /// Rows of one whole product.
    pub fn rows(&self) -> u64 {
        self.size as u64
    }

    /// Computes the next `rows` rows of the product, over and over.
    pub fn multiply_rows(&mut self, rows: u64) {
        for _ in 0..rows {
            self.multiply_row(self.next_row);
            self.next_row = (self.next_row + 1) % self.size;
        }
    }

    fn multiply_row(&self, row: usize) {
        let (left, rest) = self.cells.split_at(self.size * self.size);
        let (right, product) = rest.split_at(self.size * self.size);
        let of_row = row * self.size..(row + 1) * self.size;
        let left = &left[of_row.clone()];
        for (column, cell) in product[of_row].iter().enumerate() {
            let mut sum = 0_u64;
            cell.store(sum, Ordering::Relaxed);
            let mut at = column;
            for x in left {
                let y = right[at].load(Ordering::Relaxed);
                sum = sum.wrapping_add(x.load(Ordering::Relaxed).wrapping_mul(y));
                cell.store(sum, Ordering::Relaxed);
                at += self.size;
            }
        }
    }
}

/// Side of three square matrices of 64-bit numbers in `footprint_bytes`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the root of a u64 has 32 bits"
)]
fn side(footprint_bytes: u64) -> usize {
    ((footprint_bytes / 3 / 8).isqrt() as usize).max(1)
}

/// Rows for each request, with a fraction that is carried to the next request.
#[derive(Debug, Clone)]
pub struct RowBudget {
    rows_per_request: f64,
    carry: f64,
}

impl RowBudget {
    /// `operations` whole products of `rows_per_operation`, and `handicap_percent` more.
    pub fn new(operations: u32, rows_per_operation: u64, handicap_percent: f64) -> Self {
        let rows = f64::from(operations) * rows_per_operation as f64;
        RowBudget {
            rows_per_request: (rows * (1.0 + handicap_percent / 100.0)).max(0.0),
            carry: 0.0,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "rows of one request; if there were more than a u64 has, the cast would saturate"
    )]
    pub fn next_request(&mut self) -> u64 {
        self.carry += self.rows_per_request;
        let whole = self.carry.floor();
        self.carry -= whole;
        whole as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrices_fill_the_footprint_and_not_more() {
        assert_eq!(side(256 * 1024), 104);
        assert_eq!(side(0), 1);
        assert_eq!(side(3 * 8 * 100), 10);
    }

    #[test]
    fn the_product_is_right() {
        let mut matrices = Matrices::new(3 * 8 * 4);
        matrices.multiply_rows(2);
        // [1 2; 3 4] × [5 6; 7 8]
        let product: Vec<u64> = matrices.cells[8..]
            .iter()
            .map(|c| c.load(Ordering::Relaxed))
            .collect();
        assert_eq!(product, [19, 22, 43, 50]);
    }

    #[test]
    fn one_percent_of_five_matrices_is_five_rows_and_a_fifth_a_request() {
        let mut budget = RowBudget::new(5, 104, 1.0);
        let rows: u64 = (0..1000).map(|_| budget.next_request()).sum();
        assert!(rows.abs_diff(525_200) <= 1, "{rows}");
    }

    #[test]
    fn without_a_handicap_each_request_is_whole_products() {
        let mut budget = RowBudget::new(5, 104, 0.0);
        assert!((0..100).all(|_| budget.next_request() == 520));
    }

    #[test]
    fn a_handicap_below_minus_a_hundred_leaves_no_work() {
        assert_eq!(RowBudget::new(5, 104, -200.0).next_request(), 0);
    }
}
