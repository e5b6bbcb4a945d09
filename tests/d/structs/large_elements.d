/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of associative arrays have a limit, and a message. */
/* flags: -q -xerrtags */
/* status: 1 */
/* stderr: [D_NOMEM] elements of 'a' have 2000 bytes; 1024 is the most */
struct large { char bytes[2000]; };
struct large v, a[int];
BEGIN
{
	v.bytes[1999] = 'x';
	a[1] = v;
	printf("%c\n", a[1].bytes[1999]);
	exit(0);
}
