//! The device tree of a guest whose CPUs are not all as strong: QEMU's own, with the capacities that an
//! experiment gives to CPUs. The format is that of the Devicetree Specification, chapter 5.

use crate::failure::{io, unmet_error};
use crate::qemu::CommandLine;
use crate::{VmError, cache};
use doors::read;
use doors::started::tool_command;
use doors::written::{self, Part};
use model::printable::write_hexadecimal;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Below the cache.
pub(crate) const DIRECTORY: &str = "device-trees";

/// The device tree of this machine with these capacities, a file that everybody may read.
pub(crate) fn prepare(
    line: &CommandLine,
    capacities: &[u32],
    cache_dir: &Path,
) -> Result<PathBuf, VmError> {
    let dir = cache_dir.join(DIRECTORY);
    written::make_directory(&dir).map_err(io("create", &dir))?;
    let part = Part::create_in(&dir).map_err(io("create", &dir))?;
    let own = part.directory().join("qemu.dtb");
    let mut qemu = tool_command(line.architecture.qemu);
    let said = read::output_of(qemu.args(line.dump_args(&own))).map_err(io("start", &dir))?;
    let tree = read::large_file_bytes(&own).ok();
    let tree = tree.and_then(|tree| with_capacities(&tree, capacities));
    let tree = tree.ok_or_else(|| {
        let said = String::from_utf8_lossy(&said.stderr).trim().to_owned();
        let what = format!("{} gives no device tree: {said}", line.architecture.qemu);
        unmet_error("target vm", &what, "leave out `capacities`")
    })?;
    let hash = write_hexadecimal(&Sha256::digest(&tree)[..8]);
    let path = dir.join(format!("{hash}.dtb"));
    if !cache::is_for_all(&path) {
        cache::write_whole(&path, &tree)?;
    }
    Ok(path)
}

const MAGIC: u32 = 0xd00d_feed;
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const NOP: u32 = 4;
const END: u32 = 9;
/// Numbers of the header.
const HEADER: usize = 10;
/// Capacity of a CPU (Documentation/devicetree/bindings/cpu/cpu-capacity.txt of the kernel).
const CAPACITY: &[u8] = b"capacity-dmips-mhz\0";

/// The tree with these capacities for CPUs 0, 1, …; `None` for what is no tree with that many CPUs.
pub fn with_capacities(tree: &[u8], capacities: &[u32]) -> Option<Vec<u8>> {
    let header: Vec<u32> = (0..HEADER)
        .map(|at| word(tree, at * 4))
        .collect::<Option<_>>()?;
    let [
        MAGIC,
        _,
        structure,
        strings,
        reserved,
        version,
        compatible,
        boot_cpu,
        strings_size,
        _,
    ] = header[..]
    else {
        return None;
    };
    let at = |offset: u32| usize::try_from(offset).ok();
    let mut names = tree
        .get(at(strings)?..at(strings.checked_add(strings_size)?)?)?
        .to_vec();
    let reserved = reservations(tree.get(at(reserved)?..)?)?;
    let nodes = extended(tree.get(at(structure)?..)?, names.len(), capacities)?;
    names.extend(CAPACITY);
    let begin = HEADER * 4 + reserved.len();
    let size = |length: usize| u32::try_from(length).ok();
    let numbers = [
        MAGIC,
        size(begin + nodes.len() + names.len())?,
        size(begin)?,
        size(begin + nodes.len())?,
        size(HEADER * 4)?,
        version,
        compatible,
        boot_cpu,
        size(names.len())?,
        size(nodes.len())?,
    ];
    let header: Vec<u8> = numbers.into_iter().flat_map(u32::to_be_bytes).collect();
    Some([&header, reserved, &nodes, &names].concat())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(word.try_into().ok()?))
}

/// Reserved memory: pairs of eight bytes, the last one of zeros.
fn reservations(bytes: &[u8]) -> Option<&[u8]> {
    let count = bytes.chunks_exact(16).position(|pair| pair == [0; 16])?;
    bytes.get(..(count + 1) * 16)
}

/// The nodes, with a property of this name in each that is a CPU.
fn extended(nodes: &[u8], name: usize, capacities: &[u32]) -> Option<Vec<u8>> {
    let (mut out, mut at, mut given) = (Vec::new(), 0, 0);
    loop {
        let token = word(nodes, at)?;
        let length = match token {
            BEGIN_NODE => 4 + nodes.get(at + 4..)?.iter().position(|byte| *byte == 0)? + 1,
            PROPERTY => 12 + usize::try_from(word(nodes, at + 4)?).ok()?,
            END_NODE | NOP | END => 4,
            _ => return None,
        };
        let padded = length.checked_next_multiple_of(4)?;
        out.extend(nodes.get(at..at.checked_add(padded)?)?);
        let is_node = token == BEGIN_NODE;
        let name_of = || nodes.get(at + 4..at + length - 1);
        if let Some(cpu) = is_node.then(name_of).flatten().and_then(cpu_of) {
            let property = [
                PROPERTY,
                4,
                u32::try_from(name).ok()?,
                *capacities.get(cpu)?,
            ];
            out.extend(property.into_iter().flat_map(u32::to_be_bytes));
            given += 1;
        }
        at += padded;
        if token == END {
            return (given == capacities.len()).then_some(out);
        }
    }
}

/// The number of the CPU whose node is called so, as QEMU calls it.
fn cpu_of(name: &[u8]) -> Option<usize> {
    std::str::from_utf8(name)
        .ok()?
        .strip_prefix("cpu@")?
        .parse()
        .ok()
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;

    fn node(name: &str, content: Vec<u8>) -> Vec<u8> {
        let mut out = BEGIN_NODE.to_be_bytes().to_vec();
        out.extend(name.as_bytes());
        out.push(0);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(content);
        out.extend(END_NODE.to_be_bytes());
        out
    }

    /// A tree of two CPUs, each with a property of three bytes.
    fn tree() -> Vec<u8> {
        let property = [PROPERTY, 3, 0, 0x6162_6300].map(u32::to_be_bytes).concat();
        let cpus = [node("cpu@0", property.clone()), node("cpu@1", property)].concat();
        let mut nodes = node("", node("cpus", cpus));
        nodes.extend(END.to_be_bytes());
        let names = b"reg\0";
        let (begin, size) = (HEADER as u32 * 4 + 16, nodes.len() as u32);
        let total = begin + size + 4;
        let numbers = [MAGIC, total, begin, begin + size, 40, 17, 16, 0, 4, size];
        let header = numbers.map(u32::to_be_bytes).concat();
        [&header[..], &[0; 16], &nodes, names].concat()
    }

    #[test]
    fn each_cpu_gets_its_capacity_and_all_else_stays() {
        let old = tree();
        let new = with_capacities(&old, &[1024, 512]).unwrap();
        assert_eq!(word(&new, 4), Some(new.len() as u32));
        assert!(new.ends_with(b"reg\0capacity-dmips-mhz\0"));
        let given = |capacity: u32| {
            let property = [PROPERTY, 4, 4, capacity].map(u32::to_be_bytes).concat();
            new.windows(16).filter(|bytes| *bytes == property).count()
        };
        assert_eq!((given(1024), given(512)), (1, 1));
        assert_eq!(new.len(), old.len() + 2 * 16 + CAPACITY.len());
    }

    #[test]
    fn as_many_capacities_as_cpus_are_needed() {
        assert_eq!(with_capacities(&tree(), &[1024]), None);
        assert_eq!(with_capacities(&tree(), &[1024, 512, 256]), None);
    }

    #[test]
    fn what_is_cut_off_is_no_tree() {
        let whole = tree();
        for end in 0..whole.len() {
            assert_eq!(with_capacities(&whole[..end], &[1024, 512]), None, "{end}");
        }
    }
}
