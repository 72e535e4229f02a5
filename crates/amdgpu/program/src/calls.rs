//! Calls: callers and callees.

use crate::place::ProgramByte;

/// First register of the pair in which LLVM's functions find the address that they return to.
pub const LINK: u8 = 30;

/// The target of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallDestination {
    /// A function of this section.
    Function {
        /// Its number in [`Program::functions`](crate::Program::functions).
        function: u32,
        /// Offset in the section of the entry.
        entry: u32,
    },
    /// A target outside of this section.
    Outside(ProgramByte),
    /// An address that is not known.
    Unknown,
}

/// A call, or a jump into another function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSite {
    /// Offset of the instruction.
    pub offset: u32,
    pub callee: CallDestination,
    /// First register of the pair that gets the return address; `None` for a jump, which does not return here.
    pub link: Option<u8>,
}

impl CallSite {
    /// Whether it is a call with the link register of LLVM's functions, s[30:31]. Hand-written code mostly takes others; a
    /// jump may be a chain of shaders, whose arguments are in any vector register.
    #[must_use]
    pub const fn has_usual_link(&self) -> bool {
        matches!(self.link, Some(LINK))
    }

    /// Whether it is a jump into another function rather than a call.
    #[must_use]
    pub const fn is_tail(&self) -> bool {
        self.link.is_none()
    }
}

/// A function on the path of the walk, with the callees that it still has to visit.
struct CalleeWalk<I> {
    node: usize,
    rest: I,
}

/// Groups of mutually recursive functions, callees before callers, computed without recursion.
///
/// `callees` yields the functions that a function calls; all numbers are below `count`.
#[must_use]
pub fn bottom_up<'f, I>(count: usize, callees: impl Fn(usize) -> I) -> Vec<Vec<u32>>
where
    I: Iterator<Item = u32> + 'f,
{
    // Tarjan's algorithm; an index of 0 means "not seen".
    let (mut index, mut low, mut on_stack) = (vec![0u32; count], vec![0u32; count], vec![false; count]);
    let (mut stack, mut groups, mut next) = (Vec::new(), Vec::new(), 1);
    for root in 0..count {
        if index[root] != 0 {
            continue;
        }
        let mut path: Vec<CalleeWalk<I>> = Vec::new();
        let mut enter = Some(root);
        loop {
            if let Some(node) = enter.take() {
                (index[node], low[node], on_stack[node]) = (next, next, true);
                next += 1;
                stack.push(node as u32);
                path.push(CalleeWalk { node, rest: callees(node) });
            }
            let Some(CalleeWalk { node, rest }) = path.last_mut() else { break };
            let node = *node;
            match rest.next() {
                Some(callee) if index[callee as usize] == 0 => enter = Some(callee as usize),
                Some(callee) if on_stack[callee as usize] => low[node] = low[node].min(index[callee as usize]),
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some(CalleeWalk { node: caller, .. }) = path.last() {
                        low[*caller] = low[*caller].min(low[node]);
                    }
                    if low[node] == index[node] {
                        groups.push(group(&mut stack, &mut on_stack, node as u32));
                    }
                }
            }
        }
    }
    groups
}

fn group(stack: &mut Vec<u32>, on_stack: &mut [bool], root: u32) -> Vec<u32> {
    let mut group = Vec::new();
    while let Some(node) = stack.pop() {
        on_stack[node as usize] = false;
        group.push(node);
        if node == root {
            break;
        }
    }
    group.sort_unstable();
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callees_come_first_and_cycles_are_one_group() {
        let calls: [&[u32]; 6] = [&[1, 4], &[2], &[1, 3], &[], &[4], &[]];
        let groups = bottom_up(6, |node| calls[node].iter().copied());
        assert_eq!(groups, [vec![3], vec![1, 2], vec![4], vec![0], vec![5]]);
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let count = 300_000;
        let groups = bottom_up(count, |node| (node + 1 < count).then_some(node as u32 + 1).into_iter());
        assert_eq!((groups.len(), &groups[0][..]), (count, &[count as u32 - 1][..]));
    }
}
