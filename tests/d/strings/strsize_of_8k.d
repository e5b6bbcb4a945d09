/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21 and 46: strings have 4 KB at most; what is larger is said to be refused. */
/* flags: -q -xerrtags -xstrsize=8k */
/* status: 1 */
/* stderr: [D_PRAGMA_OPTSET] failed to set option 'strsize' to '8k': strings have 4096 bytes at most */
BEGIN
{
	s = "abc";
	printf("%s %d %d\n", s, strlen(s), sizeof (s));
	exit(0);
}
