/* SPDX-License-Identifier: Apache-2.0 */
/* Comments are white space, wherever they stand. */
/* one */ dtrace:::BEGIN /* two */
{ /* three */
	printf(/* four */ "%d\n" /* five
	six */, 7);
	exit(/* seven */ 0);
} /* eight */
/* output:
7

*/
