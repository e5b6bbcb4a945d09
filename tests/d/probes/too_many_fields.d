/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 9: a description has four fields. */
/* status: 1 */
/* stderr: line 5: invalid probe description "a:b:c:d:e": Overspecified probe description */
a:b:c:d:e
{
	exit(0);
}
