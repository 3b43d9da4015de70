//! Where histories meet: many small histories, as git sees them.

use gix::ObjectId;

use super::*;
use crate::ancestry::Ancestry;

/// Numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// Makes commits with up to three of the latest ones as parents. Several of them have the same time.
fn grow(repo: &gix::Repository, numbers: &mut Numbers, count: usize) -> Vec<ObjectId> {
    let mut commits: Vec<ObjectId> = Vec::new();
    for at in 0..count {
        let mut parents: Vec<ObjectId> = Vec::new();
        for _ in 0..numbers.below(4) {
            let back = 1 + numbers.below(6);
            if let Some(parent) = at.checked_sub(back).and_then(|at| commits.get(at))
                && !parents.contains(parent)
            {
                parents.push(*parent);
            }
        }
        let time = gix::date::Time::new(1_700_000_000 + i64::try_from(at / 3).unwrap(), 0);
        let who = gix::actor::Signature { name: "Ann".into(), email: "ann@example.org".into(), time };
        let mut buffer = gix::date::parse::TimeBuf::default();
        let by = who.to_ref(&mut buffer);
        let tree = repo.empty_tree().id;
        commits.push(repo.new_commit_as(by, by, format!("commit {at}"), tree, parents).unwrap().id);
    }
    commits
}

#[test]
fn histories_meet_where_git_says() {
    let home = Home::new();
    for seed in 0..6 {
        let repo = home.empty(&format!("r{seed}"), &[]);
        let place = repo.place();
        let mut numbers = Numbers(seed);
        let commits = grow(&place.repo, &mut numbers, 40);
        let mut ancestry = Ancestry::new(&place.repo);
        for _ in 0..25 {
            let [one, other] = [0; 2].map(|_| commits[numbers.below(commits.len())]);
            let [a, b] = [one, other].map(|id| id.to_string());
            let meeting = ancestry.meeting(one, other).unwrap();
            let counted = format!("{}\t{}", meeting.ahead, meeting.behind);
            let range = format!("{a}...{b}");
            assert_eq!(counted, repo.git(&["rev-list", "--left-right", "--count", &range]), "{seed}: {range}");
            let sorted = |mut bases: Vec<String>| {
                bases.sort();
                bases
            };
            let bases = repo.run(&["merge-base", "--all", &a, &b]).stdout;
            let bases = String::from_utf8(bases).unwrap().lines().map(str::to_owned).collect();
            let ours = meeting.bases.iter().map(ToString::to_string).collect();
            assert_eq!(sorted(ours), sorted(bases), "{seed}: {range}");
            let is_ancestor = repo.run(&["merge-base", "--is-ancestor", &b, &a]).status.success();
            assert_eq!(ancestry.contains(one, other).unwrap(), is_ancestor, "{seed}: {range}");
        }
    }
}
