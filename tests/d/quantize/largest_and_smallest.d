/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 37: the outermost buckets have no neighbour. */
BEGIN
{
	@a = quantize(9223372036854775807);
	@b = quantize(-9223372036854775807);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
2305843009213693952 |                                         0        
4611686018427387904 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        


           value  ------------- Distribution ------------- count    
-4611686018427387904 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
-2305843009213693952 |                                         0        

*/
