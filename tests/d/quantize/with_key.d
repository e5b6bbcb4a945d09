/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 35 and 37: the key, then its table. */
BEGIN
{
	@["a"] = quantize(1);
	@["b"] = quantize(2);
	exit(0);
}
/* output:

  a                                                 
           value  ------------- Distribution ------------- count    
               0 |                                         0        
               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
               2 |                                         0        

  b                                                 
           value  ------------- Distribution ------------- count    
               1 |                                         0        
               2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
               4 |                                         0        

*/
