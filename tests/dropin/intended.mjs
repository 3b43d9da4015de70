// Where the first-party plugins differ from the reference servers on purpose. Each must still differ.

const text = ({ result }) => JSON.stringify(result.content);
const left = (told) => JSON.stringify(told.left);

export const INTENDED = {
  tools: Object.fromEntries(
    ['read_text_file', 'read_file'].map((tool) => [
      tool,
      [{ reason: 'head and tail are taken, and offset with limit is shown in their place', matches: /^type of (head|tail) / }],
    ]),
  ),
  calls: [
    {
      id: 'what is ignored',
      reason: '.git, node_modules and what .gitignore names are left out, and said to be, unless includeIgnored asks for them',
      applies: (_, __, ours) => text(ours).includes('With includeIgnored'),
    },
    {
      id: 'what is not text',
      reason: 'binary data is refused, and bytes that are not UTF-8 are said to be such',
      applies: (_, __, ours) => ['it is binary data', 'This is not UTF-8'].some((said) => text(ours).includes(said)),
    },
    {
      id: 'modes of files',
      reason: 'WASI tells a plugin nothing of modes, so get_file_info has no line for them',
      applies: ({ tool }, theirs, ours) => tool === 'get_file_info' && !theirs.result.isError && !ours.result.isError,
    },
    {
      id: 'the last lines',
      reason: 'the end of the last line is not a line of its own, and lines end as they do in the file',
      applies: ({ tool, args }) => tool === 'read_text_file' && Number.isInteger(args.tail) && args.tail > 0,
    },
    {
      id: 'no number of lines',
      reason: 'half a line, or fewer than none, is refused',
      applies: ({ tool, args }) => tool === 'read_text_file' && [args.head, args.tail].some((lines) => lines < 0 || lines % 1 > 0),
    },
    {
      id: 'null',
      reason: 'null stands for what may be left out, since many clients write it',
      applies: ({ args }) => Object.values(args).includes(null),
    },
    {
      id: 'links that lead outside',
      reason: 'the size of a file outside is not told',
      applies: ({ tool }) => tool === 'list_directory_with_sizes',
    },
    {
      id: 'ends of lines',
      reason: 'edit_file leaves each line the end it has: the reference server makes all of Windows ends those of Unix',
      applies: (_, theirs, ours) => text(theirs) === text(ours) && left(theirs) === left(ours).replaceAll('\\r\\n', '\\n'),
    },
    {
      id: 'empty oldText',
      reason: 'what is not there is not found: the reference server edits the beginning of the file',
      applies: ({ tool, args }) => tool === 'edit_file' && args.edits.some(({ oldText }) => oldText === ''),
    },
    {
      id: 'blank oldText',
      reason: 'blank lines fit anywhere there are some, which is nowhere in particular',
      applies: ({ tool, args }, _, ours) =>
        tool === 'edit_file' && ours.result.isError && args.edits.some(({ oldText }) => oldText.trim() === ''),
    },
    {
      id: 'the end of the last line',
      reason: 'text that ends in a line end is found at the end of a file that does not',
      applies: ({ tool, args }, theirs) =>
        tool === 'edit_file' && theirs.result.isError && args.edits.some(({ oldText }) => oldText.endsWith('\n')),
    },
    {
      id: 'indentation',
      reason: 'lines after the first keep their indentation relative to it: the reference server moves them to the left',
      applies: ({ tool, args }) => tool === 'edit_file' && args.edits.some(({ oldText }) => oldText.includes('\n  ')),
    },
    {
      id: 'diffs of repeated lines',
      reason: 'the same change can be shown in two ways',
      applies: ({ tool }, theirs, ours) => tool === 'edit_file' && left(theirs) === left(ours) && !ours.result.isError,
    },
    {
      id: 'characters',
      reason: '`?` is a character, not half of one',
      applies: ({ args }) => [args.pattern, ...(args.excludePatterns ?? [])].some((glob) => glob?.includes('??')),
    },
    {
      id: 'an empty excludePatterns',
      reason: 'nothing is excluded by no name: the reference server hides everything',
      applies: ({ tool, args }) => tool === 'directory_tree' && args.excludePatterns?.includes(''),
    },
    {
      id: 'moving a link',
      reason: 'what is moved is the link: the reference server moves the file behind it and leaves a link to nothing',
      applies: ({ tool, args }) => tool === 'move_file' && args.source.endsWith('/link'),
    },
    {
      id: 'writing through a link to nothing',
      reason: 'the file that the link names is made, as everywhere',
      applies: ({ tool, args }) => tool === 'write_file' && args.path.endsWith('/gone'),
    },
  ],
};
